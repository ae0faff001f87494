// Who is signed in, what is followed, which view is shown.
import { agentView } from "./agent.js";
import { Client, Refusal, follow } from "./client.js";
import { h, say, tick } from "./dom.js";
import { Fleet } from "./fleet.js";
import { fleetView } from "./list.js";
import { signIn } from "./signin.js";
import { teamView, treeView } from "./tree.js";
import { count, readAddress, writeAddress } from "./words.js";

const VIEWS = { fleet: fleetView, tree: treeView, agents: agentView, teams: teamView };
const SAY_EVERY = 3000;
const byId = (id) => document.getElementById(id);

const app = { fleetAddress: "#/", client: null, fleet: new Fleet(), address: readAddress(location.hash), refused: null, filled: false, scope: "" };
let view = null;
let following = null;
let waiting = false;
let lostAt = 0;
let news = [];

/** Change the filters in the address; the way back leads to the view before, not to each letter. */
app.filterBy = (filter) => {
  history.replaceState(null, "", writeAddress(app.address.view === "tree" ? "tree" : "", filter));
  app.address = readAddress(location.hash);
  app.look();
};

app.look = () => {
  if (app.address.view === "fleet") app.fleetAddress = writeAddress("", app.address.filter);
  const wanted = app.address.filter.namespace || "";
  if (["fleet", "tree"].includes(app.address.view) && wanted !== app.scope) start(wanted);
  document.querySelector("[data-view=fleet]").href = app.fleetAddress;
  document.querySelector("[data-view=tree]").href = writeAddress("tree", { namespace: app.scope });
  refresh();
};

app.signOut = (words = "") => {
  following?.abort();
  Object.assign(app, { client: null, fleet: new Fleet(), filled: false, refused: null });
  byId("head").hidden = true;
  byId("lost").hidden = true;
  show(signIn(begin, words));
};

function begin(token, namespace) {
  app.client = new Client(token);
  byId("head").hidden = false;
  if (namespace && ["fleet", "tree"].includes(app.address.view)) {
    const filter = { ...app.address.filter, namespace };
    history.replaceState(null, "", writeAddress(app.address.view === "tree" ? "tree" : "", filter));
  }
  app.scope = namespace || app.address.filter.namespace || "";
  route();
  start(app.scope);
}

/** Read the agents of a namespace, or all of them, from the beginning. */
function start(namespace) {
  following?.abort();
  following = new AbortController();
  app.scope = namespace;
  app.filled = false;
  app.refused = null;
  const tell = {
    filled: () => { app.filled = true; app.refused = null; refresh(); },
    live: () => connection("live", "Live"),
    changed: (change) => { if (change) hear(change); refresh(); },
    lost,
    refused: (error) => {
      if (error.status === 401) return app.signOut(error.message);
      if (!namespace && app.address.namespace) return start(app.address.namespace);
      app.refused = error;
      app.fleet = new Fleet();
      connection("off", "Not allowed");
      refresh();
    },
  };
  connection("waiting", "Connecting");
  app.fleet = new Fleet();
  follow(app.client, namespace, app.fleet, tell, following.signal);
}

function lost(error) {
  lostAt ||= Date.now();
  connection("lost", "Connection lost");
  const at = new Date(lostAt).toLocaleTimeString();
  const why = error instanceof Refusal ? error.message : "the management API does not answer";
  byId("lost").textContent = `Connection lost: ${why}. What you see is of ${at}; trying again.`;
  byId("lost").hidden = false;
}

function connection(state, words) {
  const shown = byId("connection");
  if (shown.textContent !== words) shown.replaceChildren(h("span", { class: `dot ${state}`, "aria-hidden": "true" }), words);
  if (state === "lost") return;
  lostAt = 0;
  byId("lost").hidden = true;
}

/** What a screen reader is told: who got better or worse, not every change. */
function hear({ before, after }) {
  if (before && after && before.level !== after.level) news.push(after);
}

setInterval(() => {
  if (news.length === 1) say(`${news[0].name} is ${news[0].level}: ${news[0].cause}`);
  else if (news.length) say(`${count(news.length, "agent")} changed, ${count(news.filter((one) => one.level === "UNHEALTHY").length, "agent")} UNHEALTHY now`);
  news = [];
}, SAY_EVERY);

/** Once per frame, however much has changed. */
function refresh() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    view?.update();
  });
}

function show(next) {
  view?.close?.();
  view = next;
  byId("main").replaceChildren(next.element);
  document.title = `${next.title} · Supervision`;
}

function route() {
  app.address = readAddress(location.hash);
  if (!app.client) return;
  show(VIEWS[app.address.view](app));
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === app.address.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  window.scrollTo(0, 0);
  app.look();
}

addEventListener("hashchange", () => {
  if (location.hash === "#main") return byId("main").focus();
  route();
  byId("main").focus({ preventScroll: true });
});
byId("leave").addEventListener("click", () => app.signOut());
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); byId("main").focus(); });
setInterval(tick, 1000);
app.signOut();
