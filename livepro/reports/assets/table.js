// Tables whose rows are drawn as they come into view, sorted by a click on a heading, filtered as one types.
// Arrow keys, Page Up and Down, Home and End move between rows, Enter opens one.

const ROW = 30; // pixels, as --row in the style
const AROUND = 12; // rows drawn above and below what is seen

/**
 * columns: {title, get(row): number or string, show(row): text (default: get), num, bar(row): 0 to 1, width, mono, cls(row)}.
 * options: {caption, sort: column, up, filter: false, sortable: false, open(row), height}
 */
class VirtualTable {
  constructor(rows, columns, options) {
    this.columns = columns; this.options = options; this.all = rows;
    this.sort = options.sort ?? -1; this.up = options.up ?? false;
    this.words = []; this.active = 0; this.selected = null;
    this.box = el("div", { class: "table" });
    if (options.filter !== false) {
      this.count = el("span", { class: "count", role: "status" });
      const input = el("input", { type: "search", oninput: (e) => this.filter(e.target.value), "aria-label": "Filter " + options.caption });
      this.tools = el("div", { class: "tools" }, el("label", {}, "Filter", input), this.count);
      this.box.append(this.tools);
    }
    this.head = el("tr", { "aria-rowindex": 1 });
    this.body = el("tbody");
    this.table = el("table", { role: "grid", "aria-label": options.caption },
      el("colgroup", {}, columns.map((c) => el("col", c.width ? { style: `width:${c.width}px` } : {}))),
      el("thead", {}, this.head), this.body);
    this.table.style.minWidth = sum(columns, (c) => c.width || (document.body.clientWidth < 600 ? 140 : 180)) + "px";
    this.scroll = el("div", { class: "scroll", tabindex: -1, onscroll: () => this.draw() }, this.table);
    if (options.height) this.scroll.style.maxHeight = options.height + "px";
    this.box.append(this.scroll);
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.arrange();
    new ResizeObserver(() => this.draw()).observe(this.scroll);
  }

  /** Show other rows. */
  replace(rows) { this.all = rows; this.texts = null; this.selected = null; this.arrange(); }

  filter(text) { this.words = text.toLowerCase().split(/\s+/).filter(Boolean); this.arrange(); }

  show(column, row) { return column.show ? column.show(row) : column.get(row); }

  text(index) {
    this.texts ??= new Array(this.all.length);
    return (this.texts[index] ??= this.columns.map((c) => String(this.show(c, this.all[index]))).join(" ").toLowerCase());
  }

  arrange() {
    let found = this.all.map((_, n) => n);
    if (this.words.length) found = found.filter((n) => this.words.every((word) => this.text(n).includes(word)));
    const column = this.columns[this.sort];
    if (column) {
      const values = new Map(found.map((n) => [n, column.get(this.all[n])]));
      const sign = this.up ? 1 : -1;
      found.sort((a, b) => {
        const x = values.get(a), y = values.get(b);
        const order = typeof x === "string" ? (x < y ? -1 : x > y ? 1 : 0) : (x ?? -1) - (y ?? -1);
        return sign * order || a - b;
      });
    }
    this.rows = found.map((n) => this.all[n]);
    this.active = Math.min(this.active, Math.max(0, this.rows.length - 1));
    this.headings();
    if (this.count) this.count.textContent = this.words.length ? `${full(this.rows.length)} of ${full(this.all.length)}` : `${full(this.all.length)} ${this.all.length === 1 ? "row" : "rows"}`;
    this.table.setAttribute("aria-rowcount", this.rows.length + 1);
    this.drawn = null;
    this.draw();
  }

  headings() {
    this.head.replaceChildren(...this.columns.map((column, n) => {
      const sorted = n === this.sort ? (this.up ? "ascending" : "descending") : "none";
      const mark = n === this.sort ? (this.up ? " \u25b2" : " \u25bc") : "";
      const attributes = { scope: "col", class: column.num ? "num" : null, title: column.about };
      if (this.options.sortable === false) return el("th", attributes, column.title);
      const again = this.head.children[n]?.firstChild === document.activeElement;
      const button = el("button", { type: "button", onclick: () => this.sortBy(n) }, column.title + mark);
      if (again) queueMicrotask(() => button.focus());
      return el("th", { ...attributes, "aria-sort": sorted }, button);
    }));
  }

  sortBy(n) {
    this.up = n === this.sort ? !this.up : !this.columns[n].num;
    this.sort = n;
    this.scroll.scrollTop = 0;
    this.arrange();
  }

  draw() {
    const height = this.scroll.clientHeight || this.options.height || 432;
    const from = Math.max(0, Math.floor(this.scroll.scrollTop / ROW) - AROUND);
    const to = Math.min(this.rows.length, Math.ceil((this.scroll.scrollTop + height) / ROW) + AROUND);
    const key = from + ":" + to;
    if (this.drawn === key) return;
    this.drawn = key;
    const focused = this.body.contains(document.activeElement);
    const out = [this.pad(from)];
    for (let n = from; n < to; n++) out.push(this.row(n));
    out.push(this.pad(this.rows.length - to));
    if (!this.rows.length) out.push(el("tr", {}, el("td", { colspan: this.columns.length, class: "empty" }, "Nothing to show")));
    this.body.replaceChildren(...out);
    if (focused) this.body.querySelector(`[data-n="${this.active}"]`)?.focus({ preventScroll: true });
  }

  pad(rows) { return el("tr", { class: "pad", "aria-hidden": "true" }, el("td", { colspan: this.columns.length, style: `height:${rows * ROW}px` })); }

  row(n) {
    const row = this.rows[n];
    const open = this.options.open;
    const out = el("tr", {
      "data-n": n, "aria-rowindex": n + 2, tabindex: n === this.active ? 0 : -1,
      class: [open ? "opens" : "", row.source ? "src" : ""].join(" ").trim() || null,
      "aria-selected": open ? String(row === this.selected) : null,
      onclick: () => { this.active = n; this.choose(row); },
      onfocus: () => { this.active = n; },
    });
    for (const column of this.columns) {
      const shown = this.show(column, row);
      const cell = el("td", { class: [column.num ? "num" : "", column.mono ? "mono" : "", column.cls ? column.cls(row) : ""].join(" ").trim() || null, title: typeof shown === "string" && shown.length > 18 ? visible(shown) : null }, shown ?? "");
      if (column.bar) {
        cell.classList.add("bar");
        cell.style.setProperty("--part", (100 * Math.min(1, Math.max(0, column.bar(row)))).toFixed(2) + "%");
      }
      out.append(cell);
    }
    return out;
  }

  choose(row) {
    if (!this.options.open) return;
    this.selected = row;
    for (const shown of this.body.querySelectorAll("tr[data-n]")) shown.setAttribute("aria-selected", String(this.rows[shown.dataset.n] === row));
    this.options.open(row);
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.scroll.clientHeight / ROW) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); this.choose(this.rows[this.active]); return; }
    if (!(event.key in steps)) return;
    event.preventDefault();
    this.go(Math.max(0, Math.min(this.rows.length - 1, this.active + steps[event.key])));
  }

  /** Move to row `n` of what is shown. */
  go(n) {
    this.active = n;
    const top = n * ROW, seen = this.scroll.clientHeight - ROW;
    if (top < this.scroll.scrollTop) this.scroll.scrollTop = top;
    else if (top + ROW > this.scroll.scrollTop + seen) this.scroll.scrollTop = top + ROW - seen;
    this.drawn = null;
    this.draw();
    const row = this.body.querySelector(`[data-n="${n}"]`);
    for (const other of this.body.querySelectorAll("tr[data-n]")) other.tabIndex = other === row ? 0 : -1;
    row?.focus({ preventScroll: true });
  }
}
