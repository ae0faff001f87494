// One agent: how it is, what became of it, and what can be ordered.
import { Refusal } from "./client.js";
import { command, conditions, glyph, h, now, say, since, table } from "./dom.js";
import { age, count, teamAddress } from "./words.js";

const LOOK_EVERY = 5000;
const ORDERS = {
  pause: { on: ["Running"], title: "Pause", words: "Its pod goes on, but the agent is neither judged nor restarted until you resume it." },
  resume: { on: ["Paused"], title: "Resume", words: "It is judged again; it has one full silence allowance first." },
  restart: { on: ["Running", "Paused"], title: "Restart", words: "Its pod is replaced by a new one. This does not count against its restart budget, and it is the way out of FAILED and TERMINATED." },
  stop: { on: ["Running", "Paused"], title: "Stop", words: "Its pod is ended and none is made until you start it." },
  start: { on: ["Stopped"], title: "Start", words: "A pod is made for it, with a full restart budget." },
};

export function agentView(app) {
  const { namespace, name } = app.address;
  const path = `/namespaces/${encodeURIComponent(namespace)}/supervisors/${encodeURIComponent(name)}`;
  const part = (id, title) => {
    const body = h("div", {});
    return { body, section: h("section", { class: "part", "aria-labelledby": id }, h("h2", { id }, title), body) };
  };
  const beats = part("beats", "Beats");
  const events = part("events", "Events");
  const end = part("end", "Last words");
  const state = part("state", "Conditions");
  const commands = part("commands", "Commands for what you see");
  const head = h("div", { class: "head" });
  const orders = h("div", { class: "orders", role: "group", "aria-label": "Orders" });
  const facts = h("dl", { class: "facts" });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const yaml = h("pre", { tabindex: "0", "aria-label": "YAML" });
  const open = h("details", { class: "part", ontoggle: readYaml }, h("summary", {}, h("h2", {}, "YAML")), yaml);
  const element = h("article", { class: "agent" },
    h("p", { class: "back" }, h("a", { href: app.fleetAddress }, "← Fleet")), problem, head, orders, facts,
    beats.section, end.section, events.section, state.section, commands.section, open);
  let seen = null;
  let busy = false;
  let again = false;
  let closed = false;
  const timer = setInterval(look, LOOK_EVERY);

  async function look() {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const [object, health, pulse, story] = await Promise.all([
        app.client.get(path), app.client.get(`${path}/health`),
        app.client.get(`${path}/beats`).catch(refused), app.client.get(`${path}/story`).catch(refused)]);
      if (!closed) draw(object, health, pulse, story);
    } catch (error) {
      if (error.status === 401) app.signOut(error.message);
      else fail(error);
    }
    busy = false;
    if (again && !closed) { again = false; look(); }
  }

  function fail(error) {
    problem.textContent = error.status === 404 ? `There is no agent ${namespace}/${name} any more.` : error.message;
    problem.hidden = false;
  }

  function draw(object, health, pulse, story) {
    problem.hidden = true;
    replace(head, header(object, health));
    replace(facts, factsOf(object, health));
    drawOrders(health);
    replace(beats.body, pulse.error ? [words(pulse)] : pulseOf(pulse, story.events || [], health));
    replace(end.body, lastWords(object.status.lastTermination));
    replace(events.body, [story.error ? words(story) : eventsOf(story.events)]);
    replace(state.body, [conditions(object.status.conditions)]);
    const told = health.commands.map(command);
    replace(commands.body, [
      told.length ? h("h3", {}, "What to do next") : null, told.length ? h("ul", { class: "commands" }, told) : null,
      h("h3", {}, "The same from a terminal"), h("ul", { class: "commands" }, sameCommands(health).map(command))]);
  }

  function drawOrders(health) {
    const wanted = Object.keys(ORDERS).filter((order) => ORDERS[order].on.includes(health.mode)).join();
    if (orders.dataset.wanted === wanted) return;
    orders.dataset.wanted = wanted;
    orders.replaceChildren(...wanted.split(",").map((order) => h("button", { type: "button", class: order === "stop" ? "danger" : "", onclick: () => ask(order) }, ORDERS[order].title)));
  }

  function ask(order) {
    const { title, words: said } = ORDERS[order];
    confirm(`${title} ${name}?`, said, `kubectl supervisor ${order} ${name} -n ${namespace}`, title, async () => {
      await app.client.post(`${path}/${order}`);
      say(`${title}: asked for`);
      look();
    });
  }

  async function readYaml() {
    if (!open.open) return;
    try {
      yaml.textContent = await app.client.text(`${path}/yaml`);
    } catch (error) {
      yaml.textContent = error.message;
    }
  }

  function update() {
    const known = app.fleet.find(namespace, name);
    if (known === seen && seen !== null) return;
    seen = known;
    if (open.open) readYaml();
    look();
  }

  return { element, title: name, update, close() { closed = true; clearInterval(timer); } };
}

const refused = (error) => {
  if (error instanceof Refusal && error.status !== 401) return { error };
  throw error;
};
const words = ({ error }) => h("p", { class: "muted" }, error.message);

/** New content only where it differs, so that a selection or the focus stays. */
function replace(element, children) {
  const next = element.cloneNode(false);
  next.append(...children.filter(Boolean));
  const still = (one) => one.innerHTML.replaceAll(/<time[^>]*>[^<]*<\/time>/g, "");
  if (still(next) !== still(element) || !element.contains(document.activeElement)) element.replaceChildren(...next.childNodes);
}

function header(object, health) {
  const about = [health.phase, health.health && `agent ${health.health}`, `mode ${health.mode}`].filter(Boolean);
  return [
    h("h1", {}, glyph(health.level), health.name, " ", h("span", { class: `level ${health.level}` }, health.level)),
    h("p", { class: "muted" }, `${health.namespace} · ${about.join(" · ")}`),
    object.spec.description ? h("p", { class: "description" }, object.spec.description) : null,
    h("p", { class: "cause" }, h("em", {}, health.reason), " ", health.cause),
    h("p", { class: "next" }, "→ ", health.nextStep),
  ];
}

function factsOf(object, health) {
  const { spec, status } = object;
  const beat = health.heartbeat;
  const here = (namespace, name) => `#/agents/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  const fact = (name, ...value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
  const most = health.restarts.used + health.restarts.left;
  const pips = Array.from({ length: Math.min(most, 20) }, (_, at) => h("i", { class: at < health.restarts.used ? "used" : "" }));
  return [
    fact("Last beat", beat.intervalSeconds ? since(beat.lastTime, "", " ago") || "none yet" : "none expected",
      beat.intervalSeconds ? h("small", {}, `every ${age(beat.intervalSeconds)}, ${beat.allowed} may be missed`) : null,
      beat.problem ? h("small", { class: "bad" }, beat.problem) : null),
    fact("Restart budget", h("span", { class: "pips", "aria-hidden": "true" }, pips), `${health.restarts.used} used, ${health.restarts.left} left`,
      h("small", {}, `${count(health.restarts.total, "restart")} in all`), health.restarts.nextTime ? h("small", {}, `next at ${new Date(health.restarts.nextTime).toLocaleTimeString()}`) : null),
    fact("Pod", health.pod || "none", h("small", {}, [status.run && `run ${status.run}`, health.node && `on ${health.node}`].filter(Boolean).join(" "))),
    fact("Started", since(status.startTime, "", " ago") || "–"),
    spec.parentRef ? fact("Under", h("a", { href: here(health.namespace, spec.parentRef.name) }, spec.parentRef.name)) : null,
    status.memberOf ? fact("Team", h("a", { href: teamAddress(health.namespace, status.memberOf.team) }, status.memberOf.team), h("small", {}, status.memberOf.role || "")) : null,
    (status.teams || []).length ? fact("Leads", status.teams.map((team) => h("a", { href: teamAddress(health.namespace, team.name) }, team.name, " "))) : null,
  ].filter(Boolean);
}

/** Beats, misses and Events on one line of time; the words beside it say the same. */
function pulseOf(pulse, events, health) {
  if (!pulse.intervalSeconds) return [h("p", { class: "muted" }, "No beats are expected of it.")];
  const from = Date.parse(pulse.since);
  const span = Date.parse(pulse.now) - from;
  const place = (element, moment) => {
    element.style.left = `${Math.max(0, Math.min(100, ((Date.parse(moment) - from) / span) * 100))}%`;
    return element;
  };
  const told = events.filter((one) => one.about.startsWith("Supervisor ") && Date.parse(one.time) >= from);
  const marks = [
    ...pulse.beats.map((one) => place(h("i", { class: "beat" }), one.time)),
    ...pulse.missed.map((moment) => place(h("i", { class: "missed" }), moment)),
    ...told.map((one) => place(h("i", { class: `event ${one.type}`, title: `${one.reason}: ${one.note}` }), one.time)),
  ];
  const silent = health.heartbeat.lastTime ? `, the last ${age((now() - Date.parse(health.heartbeat.lastTime)) / 1000)} ago` : "";
  const text = `${count(pulse.beats.length, "beat")}${silent}; ${pulse.missed.length} missed in ${age(span / 1000)}`;
  return [
    h("div", { class: "pulse", role: "img", "aria-label": text }, marks),
    h("p", { class: "axis", "aria-hidden": "true" }, h("span", {}, `${age(span / 1000)} ago`), h("span", {}, "now")),
    h("p", { class: "legend" },
      h("span", {}, h("i", { class: "beat" }), count(pulse.beats.length, "beat")),
      h("span", { class: pulse.missed.length ? "bad" : "" }, h("i", { class: "missed" }), `${pulse.missed.length} missed`),
      h("span", {}, h("i", { class: "event Warning" }), "Warning"), h("span", {}, h("i", { class: "event Normal" }), "Event")),
  ];
}

function lastWords(end) {
  if (!end) return [h("p", { class: "muted" }, "No run of it has ended yet.")];
  const code = end.exitCode === undefined ? "" : `exit code ${end.exitCode}`;
  const how = [end.podName, code, end.signal && `signal ${end.signal}`, end.reason].filter(Boolean).join(" · ");
  return [h("p", {}, how, " ", since(end.finishedAt, "· ", " ago")), h("pre", { tabindex: "0", "aria-label": "Last words" }, end.message || "It said nothing.")];
}

function eventsOf(events) {
  const rows = events.map((one) => [
    since(one.time, "", " ago"),
    h("span", { class: `kind ${one.type}` }, one.type),
    h("b", {}, one.reason), one.count > 1 ? `${one.note} (${one.count} times)` : one.note]);
  return table("Events", ["When", "Type", "Reason", "Message"], rows, "None; the API server keeps Events for an hour.");
}

function sameCommands({ namespace, name, pod }) {
  const kubectl = `kubectl -n ${namespace}`;
  return [
    `kubectl supervisor status ${name} -n ${namespace}`, `${kubectl} describe sup ${name}`, `${kubectl} get sup ${name} -o yaml`,
    ...(pod ? [`${kubectl} get heartbeat ${pod}`, `${kubectl} logs ${pod} --tail=50`] : []),
  ];
}

/** Nothing is ordered before somebody has read what will happen; a refusal is shown in its own words. */
function confirm(title, said, same, verb, act) {
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const yes = h("button", { type: "button", class: "main", onclick: go }, verb);
  const no = h("button", { type: "button", onclick: () => dialog.close(), autofocus: true }, "Cancel");
  const dialog = h("dialog", { "aria-labelledby": "asked", "aria-describedby": "said-so", onclose: () => dialog.remove() },
    h("h2", { id: "asked" }, title), h("p", { id: "said-so" }, said), h("p", { class: "muted" }, "As ", h("code", {}, same)), problem,
    h("p", { class: "answers" }, no, yes));
  async function go() {
    yes.disabled = true;
    problem.hidden = true;
    try {
      await act();
      dialog.close();
    } catch (error) {
      problem.textContent = [error.message, error.fix].filter(Boolean).join(" — ");
      problem.hidden = false;
      yes.disabled = false;
    }
  }
  document.body.append(dialog);
  dialog.showModal();
}
