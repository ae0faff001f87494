// Elements made of text, never of markup: what agents say is shown, not believed.
import { age } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
let skew = 0;

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

/** The sign of a level: a shape of its own, for those who see no colours. */
export function glyph(level) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", `glyph ${level}`);
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#${level}`);
  svg.append(use);
  return svg;
}

export const badge = (level) => h("span", { class: `badge ${level}` }, glyph(level), level);

/** The cluster's clock, since ages are of its times. */
export function setClock(moment) {
  if (moment) skew = moment - Date.now();
}

export const now = () => Date.now() + skew;

/** A time as an age that ticks. */
export function since(moment, before = "", after = "") {
  if (!moment) return null;
  const element = h("time", { datetime: moment, title: new Date(moment).toLocaleString() });
  element.dataset.since = Date.parse(moment);
  element.dataset.before = before;
  element.dataset.after = after;
  show(element);
  return element;
}

function show(element) {
  const { since: from, before, after } = element.dataset;
  const text = before + age((now() - from) / 1000) + after;
  if (element.textContent !== text) element.textContent = text;
}

export function tick() {
  document.querySelectorAll("time[data-since]").forEach(show);
}

export function say(text) {
  document.getElementById("said").textContent = text;
}

/** A command to be copied. */
export function command(text) {
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    say("Copied");
  };
  const button = navigator.clipboard && h("button", { type: "button", class: "quiet", onclick: copy, "aria-label": `Copy: ${text}` }, "Copy");
  return h("li", {}, h("code", {}, text), button || null);
}

export function table(caption, heads, rows, empty) {
  if (!rows.length) return h("p", { class: "muted" }, empty);
  const head = h("tr", {}, heads.map((text) => h("th", { scope: "col" }, text)));
  const body = rows.map((cells) => h("tr", {}, cells.map((cell, at) => h("td", { "data-head": heads[at] }, cell ?? "–"))));
  return h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": caption }, h("table", {}, h("caption", { class: "unseen" }, caption), h("thead", {}, head), h("tbody", {}, body)));
}

export function conditions(found) {
  const rows = (found || []).map((one) => [one.type, one.status, one.reason, one.message, since(one.lastTransitionTime)]);
  return table("Conditions", ["Condition", "Status", "Reason", "Message", "Since"], rows, "The operator has written none yet.");
}
