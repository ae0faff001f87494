// Words and numbers for people. Nothing here touches the page.

/** Seconds as two units at most: 4s, 2m 10s, 3h 4m, 5d 2h. */
export function age(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const units = [[86400, "d", 3600, "h"], [3600, "h", 60, "m"], [60, "m", 1, "s"]];
  for (const [size, name, small, smaller] of units) {
    if (whole < size) continue;
    const rest = Math.floor((whole % size) / small);
    return Math.floor(whole / size) + name + (rest ? ` ${rest}${smaller}` : "");
  }
  return `${whole}s`;
}

export const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

export const agentAddress = (one) => `#/agents/${encodeURIComponent(one.namespace)}/${encodeURIComponent(one.name)}`;
export const teamAddress = (namespace, name) => `#/teams/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

/** What the address asks for: a view, whose it is, and filters. */
export function readAddress(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split("?");
  const [view = "", namespace = "", name = ""] = path.split("/").filter(Boolean).map(decodeURIComponent);
  const filter = Object.fromEntries(new URLSearchParams(query));
  if (view === "agents" || view === "teams") return { view, namespace, name, filter };
  return { view: view === "tree" ? "tree" : "fleet", namespace: "", name: "", filter };
}

export function writeAddress(path, filter) {
  const given = Object.entries(filter).filter(([, value]) => value);
  const query = new URLSearchParams(given).toString();
  return `#/${path}${query ? `?${query}` : ""}`;
}

/** Text of a server-sent stream in, whole messages and the unfinished rest out. */
export function readFrames(text) {
  const blocks = text.split("\n\n");
  const rest = blocks.pop();
  const frames = blocks.map((block) => {
    const fields = block.split("\n").map((line) => line.match(/^(id|event|data): (.*)$/)).filter(Boolean);
    return Object.fromEntries(fields.map(([, name, value]) => [name, value]));
  });
  return { frames: frames.filter((one) => one.event), rest };
}
