"use strict";
// Elements and numbers. Names from the measured program only ever become text nodes.

let D = null; // names, runs and what changed between two: see livepro/reports/page.py

/** An element with attributes (`on*`: listeners, `class`, others as they are) and children (strings: text). */
function el(tag, attributes = {}, ...children) {
  const out = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) out.addEventListener(name.slice(2), value);
    else out.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) out.append(visible(child));
  return out;
}

/** Strings with control characters and what reorders text shown as such, so that no name can look like another. */
function visible(child) {
  if (typeof child === "number") return String(child);
  if (typeof child !== "string") return child;
  return child.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]/gu, "\ufffd");
}

const group = new Intl.NumberFormat("en-US");
const full = (n) => (n === null || n === undefined ? "-" : group.format(n));
function scaled(n) {
  for (const [scale, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (Math.abs(n) >= scale * 0.9995) return (n / scale).toPrecision(3) + " " + letter;
  return String(Math.round(n * 10) / 10);
}
function percent(part, whole) {
  if (!whole || !part) return "-";
  const share = (100 * part) / whole;
  return part === whole ? "100 %" : Math.abs(share) < 0.05 ? "<0.1 %" : (share < 100 ? Math.min(share, 99.9) : share).toFixed(1) + " %";
}
const hex = (n) => "0x" + n.toString(16);
const base = (path) => path.replace(/.*\//, "") || path;
const sum = (list, of = (x) => x) => list.reduce((total, x) => total + of(x), 0);
const program = (process) => base(process.command[0] || "?");

const sections = [];

/** A section of the page with a link to it in the navigation; returns the element to fill. */
function section(id, title, note) {
  const out = el("section", { id, "aria-labelledby": id + "-title" }, el("h2", { id: id + "-title" }, title));
  if (note) out.append(el("p", { class: "note" }, note));
  document.getElementById("main").append(out);
  sections.push([id, title]);
  return out;
}

/** Buttons of which one is pressed; `choose` is called with its key. */
function choice(label, options, chosen, choose) {
  const out = el("fieldset", { class: "choice", "aria-label": label });
  for (const [key, title] of options) {
    out.append(el("button", {
      type: "button", "aria-pressed": String(key === chosen),
      onclick: (event) => {
        for (const other of out.children) other.setAttribute("aria-pressed", String(other === event.currentTarget));
        choose(key);
      },
    }, title));
  }
  return out;
}

/** A labelled list to choose from: `options` are [value, text]. */
function select(label, options, chosen, choose) {
  const list = el("select", { onchange: (event) => choose(event.target.value) },
    options.map(([value, text]) => el("option", { value, selected: String(value) === String(chosen) }, text)));
  return el("label", {}, label, list);
}

/** Names and values side by side. */
const pairs = (rows) => el("dl", { class: "plain" }, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
