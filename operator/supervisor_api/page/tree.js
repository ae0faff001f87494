// Who is above whom, with the worst below shown above; and one team.
import { conditions, glyph, h, since, table } from "./dom.js";
import { LEVELS, grow, rank } from "./fleet.js";
import { agentAddress, count, teamAddress, writeAddress } from "./words.js";

const LOOK_EVERY = 5000;
const DRAW_EVERY = 500;

export function treeView(app) {
  const closed = new Set();
  const list = h("ul", { class: "tree" });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const shown = h("p", { class: "muted" });
  const element = h("section", {}, h("h1", {}, "Tree and teams"), problem, shown, list);
  let teams = [];
  let late = null;
  const look = async () => {
    try {
      teams = await readTeams(app);
      problem.hidden = true;
    } catch (error) {
      if (error.status === 401) return app.signOut(error.message);
      problem.textContent = error.message;
      problem.hidden = false;
    }
    update();
  };
  const timer = setInterval(look, LOOK_EVERY);

  function draw() {
    late = null;
    const nodes = [...[...app.fleet.agents.values()].map(agentNode), ...teams.map(teamNode)];
    const roots = grow(nodes);
    const related = roots.filter((one) => one.below.length || !one.isAgent);
    const alone = roots.length - related.length;
    const key = document.activeElement?.closest?.("[data-key]")?.dataset.key;
    const tag = document.activeElement?.tagName === "BUTTON" ? "button" : "a";
    list.replaceChildren(...related.map((one) => item(one, closed)));
    shown.textContent = app.refused ? app.refused.message
      : `${count(teams.length, "team")}; ${count(alone, "agent stands", "agents stand")} alone and ${alone === 1 ? "is" : "are"} in the fleet only.`;
    if (key) list.querySelector(`[data-key="${CSS.escape(key)}"] ${tag}`)?.focus({ preventScroll: true });
  }

  function update() {
    late ??= setTimeout(draw, teams.length ? DRAW_EVERY : 0);
  }

  look();
  return { element, title: "Tree and teams", update, close() { clearInterval(timer); clearTimeout(late); } };
}

async function readTeams(app) {
  const scope = app.scope ? `&namespace=${encodeURIComponent(app.scope)}` : "";
  const found = [];
  for (let following = ""; ;) {
    const page = await app.client.get(`/teams?limit=500${scope}${following && `&continue=${encodeURIComponent(following)}`}`);
    found.push(...page.items);
    following = page.continue;
    if (!following) return found;
  }
}

const keyOf = (kind, namespace, name) => `${kind} ${namespace} ${name}`;

const agentNode = (one) => ({
  ...one, isAgent: true, key: keyOf("agent", one.namespace, one.name), address: agentAddress(one),
  text: [one.phase, one.reason].filter(Boolean).join(" · "),
  above: one.team ? keyOf("team", one.namespace, one.team) : one.parent ? keyOf("agent", one.namespace, one.parent) : "",
});

const teamNode = (one) => ({
  key: keyOf("team", one.namespace, one.name), namespace: one.namespace, name: one.name, level: one.level, isAgent: false,
  address: teamAddress(one.namespace, one.name), text: [`${one.status.readySummary || "0/0"} ready`, one.spec.objective].filter(Boolean).join(" · "),
  above: one.spec.supervisorRef ? keyOf("agent", one.namespace, one.spec.supervisorRef.name) : "",
});

function item(node, closed) {
  const words = [
    glyph(node.worst), node.isAgent ? null : h("span", { class: "tag" }, "team"), h("a", { href: node.address }, node.name),
    h("small", {}, `${node.namespace} · ${node.text}`),
    h("span", { class: "rolled" }, node.worst === node.level ? h("span", { class: `level ${node.level}` }, node.level) : h("span", { class: `level ${node.worst}` }, `${node.level}, below ${node.worst}`), rolled(node.counts)),
  ];
  if (!node.below.length) return h("li", { class: node.worst, "data-key": node.key }, h("div", { class: "node" }, words));
  const below = [...node.below].sort((a, b) => rank(a.worst) - rank(b.worst)).map((one) => item(one, closed));
  const list = h("ul", { hidden: closed.has(node.key) }, below);
  const fold = h("button", { type: "button", class: "fold", "aria-label": `Below ${node.name}`, "aria-expanded": String(!list.hidden), onclick: turn });
  function turn() {
    list.hidden = !list.hidden;
    fold.setAttribute("aria-expanded", String(!list.hidden));
    if (list.hidden) closed.add(node.key);
    else closed.delete(node.key);
  }
  return h("li", { class: node.worst, "data-key": node.key }, h("div", { class: "node" }, fold, words), list);
}

function rolled(counts) {
  const found = LEVELS.filter((level) => counts[level]);
  return found.map((level) => h("span", { class: "few", title: `${counts[level]} ${level} below` }, glyph(level), String(counts[level])));
}

export function teamView(app) {
  const { namespace, name } = app.address;
  const path = `/namespaces/${encodeURIComponent(namespace)}/teams/${encodeURIComponent(name)}`;
  const body = h("div", {});
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const element = h("article", { class: "agent" }, h("p", { class: "back" }, h("a", { href: writeAddress("tree", { namespace: app.scope }) }, "← Tree and teams")), problem, body);
  let before = "";
  const look = async () => {
    try {
      const team = await app.client.get(path);
      problem.hidden = true;
      if (team.resourceVersion === before) return;
      before = team.resourceVersion;
      body.replaceChildren(...teamParts(team));
    } catch (error) {
      if (error.status === 401) return app.signOut(error.message);
      problem.textContent = error.message;
      problem.hidden = false;
    }
  };
  const timer = setInterval(look, LOOK_EVERY);
  return { element, title: `Team ${name}`, update: look, close() { clearInterval(timer); } };
}

function teamParts(team) {
  const { spec, status, namespace } = team;
  const stays = status.members || [];
  const link = (name) => h("a", { href: agentAddress({ namespace, name }) }, name);
  const fact = (name, ...value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
  const here = stays.filter((one) => !one.leftAt);
  const past = stays.filter((one) => one.leftAt).sort((a, b) => (a.leftAt < b.leftAt ? 1 : -1));
  const ready = (status.conditions || []).find((one) => one.type === "Ready");
  const part = (title, ...content) => h("section", { class: "part" }, h("h2", {}, title), content);
  return [
    h("div", { class: "head" },
      h("h1", {}, glyph(team.level), `Team ${team.name} `, h("span", { class: `level ${team.level}` }, team.level)),
      h("p", { class: "muted" }, [namespace, status.phase, `${status.readySummary || "0/0"} ready`].filter(Boolean).join(" · ")),
      h("p", { class: "description" }, spec.objective || "It has no objective."),
      ready ? h("p", { class: "cause" }, h("em", {}, ready.reason), " ", ready.message) : null),
    h("dl", { class: "facts" },
      fact("Lead", status.lead ? link(status.lead) : "none"),
      fact("Under", spec.supervisorRef ? link(spec.supervisorRef.name) : "nobody"),
      fact("Members", String(status.memberCount ?? here.length), h("small", {}, `${status.unresponsive || 0} unresponsive, ${status.failed || 0} failed`)),
      fact("Restarted together", since(status.order?.time, "", " ago") || "never", h("small", {}, status.order?.reason || ""))),
    part("Members", table("Members", ["Agent", "Role", "Phase", "Health", "Restarts", "Joined"],
      here.map((one) => [link(one.supervisor), one.role, one.phase, one.health, String(one.restarts ?? 0), since(one.joinedAt, "", " ago")]), "It has no members.")),
    part("Who left", table("Who left", ["Agent", "Role", "Joined", "Left"],
      past.map((one) => [one.supervisor, one.role, since(one.joinedAt, "", " ago"), since(one.leftAt, "", " ago")]), "Nobody has left.")),
    part("Conditions", conditions(status.conditions)),
  ];
}
