// The agents as the snapshot and its stream tell of them, and how they are put in order.

export const LEVELS = ["UNHEALTHY", "DEGRADED", "UNKNOWN", "HEALTHY"];
export const PHASES = ["FAILED", "SPAWNING", "ACTIVE", "PAUSED", "TERMINATED"];
export const HEALTHS = ["UNRESPONSIVE", "UNKNOWN", "HEALTHY"];

export class Fleet {
  agents = new Map();
  version = 0;

  replace(snapshot) {
    this.version = snapshot.version;
    this.agents = new Map(snapshot.supervisors.map((one) => [one.id, one]));
  }

  /** Take one event; what is older than what is known is no news. */
  apply({ type, version, supervisor }) {
    if (version < this.version) return null;
    this.version = version;
    const before = this.agents.get(supervisor.id);
    if (type === "SupervisorRemoved") this.agents.delete(supervisor.id);
    else this.agents.set(supervisor.id, supervisor);
    return { before, after: type === "SupervisorRemoved" ? null : supervisor };
  }

  find(namespace, name) {
    for (const one of this.agents.values()) if (one.namespace === namespace && one.name === name) return one;
    return null;
  }
}

export const rank = (level) => LEVELS.indexOf(level);

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

export function worstFirst(a, b) {
  return rank(a.level) - rank(b.level)
    || rank(a.health) - rank(b.health)
    || compare(a.namespace, b.namespace)
    || compare(a.name, b.name);
}

export function matches(one, filter) {
  for (const field of ["namespace", "team", "phase", "health", "level"]) {
    if (filter[field] && (one[field] || "") !== filter[field]) return false;
  }
  const words = (filter.q || "").toLowerCase().split(/\s+/).filter(Boolean);
  const text = [one.name, one.namespace, one.team, one.parent, one.pod, one.reason, one.cause].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

export function choose(agents, filter) {
  return [...agents].filter((one) => matches(one, filter)).sort(worstFirst);
}

export function tally(agents, field) {
  const found = {};
  for (const one of agents) found[one[field] || ""] = (found[one[field] || ""] || 0) + 1;
  return found;
}

/** The rows that must exist: those in sight and a few around them. */
export function inSight(top, height, rowHeight, total, spare = 6) {
  const first = Math.max(0, Math.floor(top / rowHeight) - spare);
  return [first, Math.min(total, Math.ceil((top + height) / rowHeight) + spare)];
}

/** Hang each below the one above; whose is not here, or is below it, is a root. */
export function grow(nodes) {
  const known = new Map(nodes.map((one) => [one.key, { ...one, below: [] }]));
  const roots = [];
  for (const node of [...known.values()].sort((a, b) => compare(a.namespace, b.namespace) || compare(a.name, b.name))) {
    const above = known.get(node.above);
    if (above && !leadsTo(above, node, known)) above.below.push(node);
    else roots.push(node);
  }
  roots.forEach(rollUp);
  return roots.sort((a, b) => rank(a.worst) - rank(b.worst));
}

function leadsTo(node, end, known) {
  const seen = new Set();
  for (let at = node; at && !seen.has(at.key); at = known.get(at.above)) {
    if (at === end) return true;
    seen.add(at.key);
  }
  return false;
}

function rollUp(node) {
  node.counts = {};
  node.worst = node.level;
  for (const child of node.below) {
    rollUp(child);
    for (const [level, number] of Object.entries(child.counts)) node.counts[level] = (node.counts[level] || 0) + number;
    if (child.isAgent) node.counts[child.level] = (node.counts[child.level] || 0) + 1;
    if (rank(child.worst) < rank(node.worst)) node.worst = child.worst;
  }
}
