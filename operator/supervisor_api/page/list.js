// The fleet: counts to choose by, and a list of which only the rows in sight exist.
import { badge, glyph, h, since } from "./dom.js";
import { HEALTHS, LEVELS, PHASES, choose, inSight, tally } from "./fleet.js";
import { agentAddress, count } from "./words.js";

const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };

export function fleetView(app) {
  const levels = chips("level", LEVELS);
  const phases = chips("phase", PHASES);
  const healths = chips("health", HEALTHS);
  const bar = h("div", { class: "bar", "aria-hidden": "true" }, LEVELS.map((level) => h("i", { class: level })));
  const search = h("input", { type: "search", id: "q", placeholder: "Search name, pod, cause   /", "aria-label": "Search", autocomplete: "off", spellcheck: "false" });
  const namespace = picker("namespace", "Namespace");
  const team = picker("team", "Team");
  const shown = h("p", { class: "shown", role: "status" });
  const clear = h("button", { type: "button", class: "quiet", onclick: () => app.filterBy({ namespace: app.scope }) }, "Clear filters");
  const rows = new Rows();
  const notice = h("div", { class: "notice", hidden: true });
  const title = h("h1", { class: "unseen" }, "Fleet");
  const element = h("section", { class: "fleet" }, title,
    h("div", { class: "counts" }, levels.element, phases.element, healths.element), bar,
    h("div", { class: "filters" }, search, namespace.element, team.element, clear, shown),
    notice, rows.element);
  let latest = [];

  search.addEventListener("input", () => set("q", search.value));
  search.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") { event.preventDefault(); rows.focus(0); }
    if (event.key === "Escape") set("q", "");
  });
  const slash = (event) => {
    if (event.key === "/" && !/INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) { event.preventDefault(); search.focus(); }
  };
  addEventListener("keydown", slash);

  function set(field, value) {
    const filter = { ...app.address.filter, [field]: value };
    if (field === "namespace") delete filter.team;
    app.filterBy(filter);
  }

  function chips(field, values) {
    const buttons = values.map((value) => {
      const number = h("b", {}, "0");
      const press = () => set(field, app.address.filter[field] === value ? "" : value);
      const button = h("button", { type: "button", class: "chip", "data-value": value, "aria-pressed": "false", onclick: press }, field === "level" && glyph(value), number, " ", value);
      return { value, number, button };
    });
    return { field, buttons, element: h("div", { class: `chips by-${field}`, role: "group", "aria-label": `By ${field}` }, h("span", { class: "label" }, field), buttons.map((one) => one.button)) };
  }

  function picker(field, label) {
    const options = h("datalist", { id: `${field}-known` });
    const input = h("input", { id: field, list: options.id, placeholder: `${label}: all`, "aria-label": label, autocomplete: "off", spellcheck: "false", onchange: () => set(field, input.value.trim()) });
    let known = "";
    return {
      element: h("span", {}, input, options),
      update(values) {
        if (document.activeElement !== input) input.value = app.address.filter[field] || "";
        const text = values.join();
        if (text === known) return;
        known = text;
        options.replaceChildren(...values.map((value) => h("option", { value })));
      },
    };
  }

  function updateCounts(filter, agents) {
    for (const group of [levels, phases, healths]) {
      const others = { ...filter, [group.field]: "" };
      const found = tally(choose(agents, others), group.field);
      for (const { value, number, button } of group.buttons) {
        const text = (found[value] || 0).toLocaleString("en");
        if (number.textContent !== text) number.textContent = text;
        button.setAttribute("aria-pressed", String(filter[group.field] === value));
        button.classList.toggle("none", !found[value]);
      }
    }
    const all = tally(agents, "level");
    LEVELS.forEach((level, at) => { bar.children[at].style.flexGrow = all[level] || 0; });
    element.dataset.worst = LEVELS.find((level) => all[level]) || "";
    const bad = all.UNHEALTHY || 0;
    document.title = `${bad ? `${bad} UNHEALTHY` : "Fleet"} · Supervision`;
  }

  function update() {
    const { filter } = app.address;
    const agents = [...app.fleet.agents.values()];
    latest = choose(agents, filter);
    if (document.activeElement !== search) search.value = filter.q || "";
    namespace.update([...new Set(agents.map((one) => one.namespace))].sort());
    team.update([...new Set(agents.map((one) => one.team).filter(Boolean))].sort());
    updateCounts(filter, agents);
    const filtered = Object.entries(filter).some(([field, value]) => value && field !== "namespace");
    clear.hidden = !filtered;
    const text = latest.length === agents.length ? count(agents.length, "agent") : `${latest.length.toLocaleString("en")} of ${count(agents.length, "agent")}`;
    if (shown.textContent !== text) shown.textContent = text;
    tellNothing(agents.length, filtered);
    rows.update(latest);
  }

  function tellNothing(total, filtered) {
    const words = app.refused ? refusal(app.refused) : !app.filled ? [h("p", {}, "Reading the fleet…")] : latest.length ? null
      : [h("p", {}, total && filtered ? "No agent matches these filters." : "There are no agents here yet.")];
    notice.hidden = !words;
    if (words && notice.textContent !== words.map((one) => one.textContent).join("")) notice.replaceChildren(...words);
    rows.element.hidden = Boolean(words);
  }

  function refusal(error) {
    return [h("p", { class: "problem" }, error.message), h("p", {}, "Choose a namespace above that you may look at. ", error.fix)];
  }

  return { element, title: "Fleet", update, close() { removeEventListener("keydown", slash); rows.close(); } };
}

/** A list of any length; rows are links, so that keys, menus and readers know them. */
class Rows {
  #rows = new Map();
  #agents = [];
  #height = 56;

  constructor() {
    this.list = h("ul", { class: "rows", "aria-label": "Agents, the worst first" });
    this.head = h("div", { class: "row heads", "aria-hidden": "true" }, ["Level", "Agent", "Cause and next step", "Phase", "Restarts", "Since"].map((text) => h("span", {}, text)));
    this.element = h("div", { class: "list" }, this.head, this.list);
    this.paint = () => this.#paint();
    addEventListener("scroll", this.paint, { passive: true });
    addEventListener("resize", this.paint);
    this.list.addEventListener("keydown", (event) => this.#move(event));
  }

  close() {
    removeEventListener("scroll", this.paint);
    removeEventListener("resize", this.paint);
  }

  update(agents) {
    this.#agents = agents;
    this.#paint();
  }

  focus(at) {
    const one = this.#agents[Math.max(0, Math.min(this.#agents.length - 1, at))];
    if (!one) return;
    const top = this.list.getBoundingClientRect().top + this.#agents.indexOf(one) * this.#height;
    if (top < 120 || top > innerHeight - this.#height - 20) scrollBy({ top: top - innerHeight / 2, behavior: "instant" });
    this.#paint();
    this.#rows.get(one.id)?.link.focus({ preventScroll: true });
  }

  #move(event) {
    const step = STEPS[event.key];
    const here = event.target.closest("li")?.dataset.id;
    if (step === undefined || !here) return;
    event.preventDefault();
    this.focus(this.#agents.findIndex((one) => one.id === here) + step);
  }

  #paint() {
    this.#height = parseFloat(getComputedStyle(this.list).getPropertyValue("--row")) || 56;
    this.list.style.height = `${this.#agents.length * this.#height}px`;
    const top = -this.list.getBoundingClientRect().top;
    const [first, last] = inSight(top, innerHeight, this.#height, this.#agents.length);
    const focused = document.activeElement?.closest?.(".rows li")?.dataset.id;
    const wanted = new Map();
    this.#agents.forEach((one, at) => {
      if ((at >= first && at < last) || one.id === focused) wanted.set(one.id, [one, at]);
    });
    for (const [id, row] of this.#rows) {
      if (wanted.has(id)) continue;
      row.item.remove();
      this.#rows.delete(id);
    }
    let before = null;
    for (const [id, [one, at]] of wanted) {
      const row = this.#rows.get(id) || this.#make(one);
      row.fill(one);
      row.item.style.transform = `translateY(${at * this.#height}px)`;
      row.item.setAttribute("aria-setsize", this.#agents.length);
      row.item.setAttribute("aria-posinset", at + 1);
      // Readers go by the order of the elements; one that has the focus is not moved.
      const next = before ? before.nextSibling : this.list.firstChild;
      if (row.item !== next && id !== focused) this.list.insertBefore(row.item, next);
      before = row.item;
    }
  }

  #make(one) {
    const link = h("a", { class: "row" });
    const item = h("li", { "data-id": one.id }, link);
    let shown = null;
    const row = {
      item, link,
      fill: (agent) => {
        if (agent === shown) return;
        if (shown) flash(item, shown.level !== agent.level || shown.reason !== agent.reason);
        shown = agent;
        link.href = agentAddress(agent);
        link.replaceChildren(...cells(agent));
      },
    };
    this.#rows.set(one.id, row);
    this.list.append(item);
    return row;
  }
}

function flash(item, wanted) {
  if (wanted) item.animate?.([{ backgroundColor: "var(--flash)" }, {}], { duration: matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 1200 });
}

function cells(one) {
  const place = [one.namespace, one.team && `team ${one.team}`, one.parent && `under ${one.parent}`].filter(Boolean).join(" · ");
  const quiet = one.level === "HEALTHY";
  return [
    badge(one.level),
    h("span", { class: "who" }, h("b", {}, one.name), h("small", {}, place)),
    h("span", { class: "why" }, h("span", { title: one.cause }, h("em", {}, one.reason), " ", one.cause), h("small", { class: quiet ? "quiet" : "", title: one.nextStep }, h("span", { "aria-label": "next step:" }, "→ "), one.nextStep)),
    h("span", { class: "phase" }, one.phase || "–", h("small", { class: one.health === "UNRESPONSIVE" ? "bad" : "" }, one.health || "–")),
    h("span", { class: "number" }, String(one.restarts), h("small", {}, one.run ? `run ${one.run}` : "")),
    h("span", { class: "number" }, since(one.since) || "–", h("small", {}, one.lastBeat ? since(one.lastBeat, "silent ") : "")),
  ];
}
