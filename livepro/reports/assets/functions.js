// Functions, their blocks, their instructions; modules and functions as an icicle.

let openFunctions = () => {};
let openFunction = () => {};

const functionName = (row) => row.function || `[${base(row.module).replace(/[[\]]/g, "") || "?"} without symbols]`;
const maker = (row) => (row.origin ? row.origin + (row.tier ? ` ${row.tier}` : "") : "");

function functions(run) {
  const out = section("functions", "Functions, blocks, instructions", "Choose a function to see its blocks and instructions with their counts.");
  const processes = run.processes.filter((p) => p.functions.length);
  if (!processes.length) { out.append(el("p", { class: "empty" }, "Nothing was executed.")); return; }
  let process = processes.reduce((a, b) => (b.instructions > a.instructions ? b : a)), thread = -1, turn = 0;
  const tools = el("div", { class: "tools" }), list = el("div"), detail = el("div", { id: "detail" });
  out.append(tools, list, detail);

  const whole = () => (thread < 0 ? process.instructions : process.threads[thread].instructions);
  const chooser = () => {
    tools.replaceChildren(
      processes.length > 1 ? select("Process", processes.map((p) => [run.processes.indexOf(p), `${program(p)} ${p.pid}${p.image ? " image " + p.image : ""}, ${scaled(p.instructions)}`]), run.processes.indexOf(process), (v) => { process = run.processes[v]; thread = -1; show(); }) : "",
      process.threads.length > 1 && process.code ? select("Thread", [[-1, "all threads"], ...process.threads.map((t, n) => [n, `${t.name} ${t.tid}, ${scaled(t.instructions)}`])], thread, (v) => { thread = Number(v); show(); }) : "",
      process.code ? choice("List", [["functions", "Functions"], ["blocks", "All blocks"]], "functions", (kind) => (kind === "functions" ? show() : allBlocks())) : "",
    );
  };

  async function rows() {
    if (thread < 0) return process.functions.map((f, number) => ({ ...f, number }));
    const blocks = await blocksOf(process), counted = await counts(blocks, thread);
    const sums = new Float64Array(process.functions.length), ran = new Uint32Array(process.functions.length);
    counted.instructions.forEach((n, row) => { sums[blocks.fn[row]] += n; if (n) ran[blocks.fn[row]]++; });
    return process.functions.map((f, number) => ({ ...f, number, instructions: sums[number], blocks: ran[number], simd: null })).filter((f) => f.instructions);
  }

  async function show() {
    const own = ++turn;
    chooser();
    const found = await rows();
    if (own !== turn) return;
    const compiled = process.functions.some((f) => f.origin), all = whole();
    const table = new VirtualTable(found, [
      { title: "function", get: functionName, mono: true },
      { title: "instructions", num: true, width: 150, get: (f) => f.instructions, show: (f) => full(f.instructions), bar: (f) => f.instructions / all },
      { title: "share", num: true, width: 80, get: (f) => f.instructions, show: (f) => percent(f.instructions, all) },
      ...(thread < 0 ? [{ title: "SIMD", num: true, width: 80, get: (f) => (f.simd || 0) / (f.instructions || 1), show: (f) => percent(f.simd, f.instructions) }] : []),
      { title: "blocks", num: true, width: 80, get: (f) => f.blocks, show: (f) => full(f.blocks) },
      ...(compiled ? [{ title: "made by", width: 130, get: maker }] : []),
      { title: "module", width: 190, get: (f) => base(f.module) },
    ], { caption: "functions", sort: 1, open: (f) => ofFunction(f) });
    list.replaceChildren(table.box);
    detail.replaceChildren();
    if (process.code?.left_out) detail.append(el("p", { class: "note" }, `To keep this page small, ${full(process.code.left_out)} blocks that ran least (${percent(process.code.left_out_instructions, process.instructions)} of the instructions) are not in it.`));
    if (!process.code) detail.append(el("p", { class: "note" }, "This report was written without blocks: a run with --json, without --no-code, has them."));
  }

  // The function whose code a block is where that was inlined into another one, and the chain up to that one.
  const chain = (blocks, row) => process.inlined?.[blocks.id[row]] || [];
  const innermost = (blocks, row) => chain(blocks, row)[0]?.function || "";
  const within = (blocks, row) => chain(blocks, row).map((f, n, all) => `${f.function}${f.file ? ` ${base(f.file)}:${f.line}` : ""}${n + 1 < all.length ? ", in " : ""}`).join("");

  const blockColumns = (blocks, counted, names) => [
    { title: "block", num: true, width: 80, get: (row) => blocks.id[row] }, { title: "at", num: true, width: 130, mono: true, get: (row) => blocks.offset[row], show: (row) => hex(blocks.offset[row]) },
    ...(names ? [{ title: "function", mono: true, get: (row) => functionName(process.functions[blocks.fn[row]]) }, { title: "module", width: 170, get: (row) => base(process.functions[blocks.fn[row]].module) }] : []),
    { title: "length", num: true, width: 80, get: (row) => blocks.length[row] },
    { title: "executions", num: true, width: 140, get: (row) => counted.entries[row], show: (row) => full(counted.entries[row]) },
    { title: "instructions", num: true, width: 150, get: (row) => counted.instructions[row], show: (row) => full(counted.instructions[row]), bar: (row) => counted.instructions[row] / whole() },
    { title: "share", num: true, width: 80, get: (row) => counted.instructions[row], show: (row) => percent(counted.instructions[row], whole()) },
    ...(Object.keys(process.inlined || {}).length ? [{ title: "inlined", mono: true, get: (row) => innermost(blocks, row) }] : []),
  ];

  async function allBlocks() {
    const own = ++turn, blocks = await blocksOf(process), counted = await counts(blocks, thread);
    if (own !== turn) return;
    const found = [...blocks.id.keys()].filter((row) => counted.instructions[row] > 0);
    const table = new VirtualTable(found, blockColumns(blocks, counted, true), { caption: "blocks", sort: 6, open: (row) => instructions(blocks, counted, [row], `Block ${blocks.id[row]} of ${functionName(process.functions[blocks.fn[row]])}`, detail) });
    list.replaceChildren(table.box);
    detail.replaceChildren();
  }

  async function ofFunction(f) {
    const own = ++turn, blocks = await blocksOf(process);
    if (own !== turn || !blocks) return;
    const counted = await counts(blocks, thread);
    const found = [...blocks.id.keys()].filter((row) => blocks.fn[row] === f.number && counted.instructions[row] > 0);
    const code = el("div");
    const title = `Instructions of ${functionName(f)}`;
    const table = new VirtualTable(found, blockColumns(blocks, counted, false), { caption: "blocks of " + functionName(f), sort: 4, height: 240, filter: false, open: (row) => instructions(blocks, counted, [row], `Block ${blocks.id[row]} at ${hex(blocks.offset[row])}`, code, () => instructions(blocks, counted, found, title, code)) });
    detail.replaceChildren(el("h3", {}, `Blocks of ${functionName(f)}`), found.length ? table.box : el("p", { class: "empty" }, "Its blocks are not in this page."), code);
    if (found.length) instructions(blocks, counted, found, title, code);
    table.draw();
  }

  function instructions(blocks, counted, rows, title, into, back) {
    const lines = listing(blocks, counted, rows), most = lines.reduce((m, l) => Math.max(m, l.executions || 0), 0) || 1;
    const table = new VirtualTable(lines, [
      { title: "at", num: true, width: 130, mono: true, get: (l) => l.address, show: (l) => (l.source ? "" : hex(l.address)) },
      { title: "executions", num: true, width: 150, get: (l) => l.executions, show: (l) => (l.source ? "" : full(l.executions)), bar: (l) => (l.executions || 0) / most },
      { title: "instruction", mono: true, get: (l) => l.text },
    ], { caption: title, sortable: false, filter: false, height: 480 });
    const inlined = rows.length === 1 ? within(blocks, rows[0]) : "";
    into.replaceChildren(el("div", { class: "crumbs" }, el("h3", {}, title), back ? el("button", { type: "button", onclick: back }, "Whole function") : ""), inlined ? el("p", { class: "note" }, `Inlined: ${inlined}`) : "", table.box);
    table.draw();
  }

  openFunctions = (chosen, place) => {
    if (!chosen.functions.length) return;
    process = chosen; thread = process.code ? place : -1;
    show(); out.scrollIntoView();
  };
  openFunction = async (chosen, number) => {
    process = chosen; thread = -1;
    await show();
    out.scrollIntoView();
    ofFunction({ ...process.functions[number], number });
  };
  show();
  icicle(run, processes, process);
}

const SMALLEST = 0.0008; // of the run: narrower ones are drawn together

function icicle(run, processes, first) {
  const out = section("icicle", "Modules and functions", "Widths are instructions. Click a module to enlarge it, a function to see its blocks; the table of functions above has the same.");
  const tools = el("div", { class: "tools" }), box = el("div");
  out.append(tools, box);
  const show = (process) => {
    let zoom = null;
    const items = [], total = process.instructions;
    const modules = new Map();
    process.functions.forEach((f, number) => { if (!modules.has(f.module)) modules.set(f.module, []); modules.get(f.module).push([f.instructions, number]); });
    const ordered = [...modules].map(([module, list]) => [module, list, sum(list, (x) => x[0])]).sort((a, b) => b[2] - a[2]);
    items.push({ value: [0, total, 0], name: program(process), count: total, whole: true });
    let at = 0;
    ordered.forEach(([module, list, count], colour) => {
      items.push({ value: [at, at + count, 1], name: base(module), count, colour });
      let inner = at, rest = 0, others = 0;
      for (const [instructions, number] of list) {
        if (instructions < SMALLEST * total) { rest += instructions; others++; continue; }
        items.push({ value: [inner, inner + instructions, 2], name: functionName(process.functions[number]), count: instructions, number, colour });
        inner += instructions;
      }
      if (rest) items.push({ value: [inner, inner + rest, 2], name: `${others} smaller functions`, count: rest, colour });
      at += count;
    });
    box.replaceChildren();
    const drawn = chart(box, 170, `Modules and functions of ${program(process)} by instructions`, () => ({
      grid: { left: 4, right: 4, top: 4, bottom: 4 },
      tooltip: { formatter: (p) => { const item = items[p.dataIndex]; return tip(item.name, [["instructions", full(item.count)], ["share", percent(item.count, total)]]); } },
      xAxis: { type: "value", show: false, min: zoom ? zoom[0] : 0, max: zoom ? zoom[1] : total },
      yAxis: { type: "value", show: false, min: 0, max: 3, inverse: true },
      series: [{
        type: "custom", encode: { x: [0, 1] }, data: items.map((i) => i.value), clip: true,
        renderItem: (params, api) => {
          const item = items[params.dataIndex], level = item.value[2], colours = palette();
          const [x, y] = api.coord([item.value[0], level]), [end, bottom] = api.coord([item.value[1], level + 1]);
          const area = params.coordSys, from = Math.max(x, area.x), to = Math.min(end, area.x + area.width), width = to - from - 1;
          if (width < 0.3) return null;
          return {
            type: "rect", shape: { x: from, y: y + 1, width: Math.max(0.6, width), height: bottom - y - 2, r: 2 },
            style: { fill: item.whole ? style("--line") : colours[item.colour % colours.length], opacity: level === 2 ? 0.82 : 1 },
            textConfig: { position: "insideLeft" },
            textContent: width > 30 ? { style: { text: visible(item.name), width: width - 10, overflow: "truncate", ellipsis: "\u2026", fill: item.whole ? style("--text") : dark() ? "#10131a" : "#fff", fontSize: 12 } } : undefined,
          };
        },
      }],
    }), (event) => {
      const item = items[event.dataIndex];
      if (item.number !== undefined) { openFunction(process, item.number); return; }
      zoom = item.whole || item.value[2] === 2 ? null : [item.value[0], item.value[1]];
      drawn.draw();
      out2.hidden = !zoom;
    });
    const out2 = el("button", { type: "button", hidden: true, onclick: () => { zoom = null; drawn.draw(); out2.hidden = true; } }, "Whole process");
    tools.replaceChildren(
      processes.length > 1 ? select("Process", processes.map((p) => [run.processes.indexOf(p), `${program(p)} ${p.pid}${p.image ? " image " + p.image : ""}`]), run.processes.indexOf(process), (v) => show(run.processes[v])) : "",
      select("Enlarge", [["", "the whole process"], ...items.filter((i) => i.value[2] === 1).map((i) => [i.value.join(), `${i.name}, ${percent(i.count, total)}`])], "", (v) => { zoom = v ? v.split(",").slice(0, 2).map(Number) : null; drawn.draw(); out2.hidden = !zoom; }),
      out2);
  };
  show(first);
}
