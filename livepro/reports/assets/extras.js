// What only some runs have: Java, snapshots, comparisons, and whatever other analyses put into the report.

const KINDS = { total: "Total", process: "Processes", thread: "Threads", function: "Functions", type: "Types", simd: "SIMD" };

function comparison(diff) {
  const out = section("compare", "What changed", `From A (${D.names[0]}) to B (${D.names[1]}), by name; what changed most comes first.`);
  const box = el("div");
  const sign = (n) => (n > 0 ? "+" : "") + full(n);
  const show = (kind) => {
    const rows = diff[kind], changed = rows.filter((r) => r.delta).slice(0, 12);
    box.replaceChildren();
    if (changed.length) {
      const narrow = document.body.clientWidth < 620;
      chart(box, 44 + 24 * changed.length, `The greatest changes: ${KINDS[kind]}`, () => ({
        grid: { left: narrow ? 112 : 260, right: narrow ? 20 : 90, top: 6, bottom: 26 },
        tooltip: { trigger: "axis", axisPointer: { type: "shadow" }, formatter: ([p]) => { const r = changed[p.dataIndex]; return tip(r.name, [["A", full(r.before)], ["B", full(r.after)], ["change", sign(r.delta)]]); } },
        xAxis: { type: "value", axisLabel: { formatter: scaled, hideOverlap: true } },
        yAxis: { type: "category", inverse: true, data: changed.map((r) => visible(r.name)), axisTick: { show: false }, axisLabel: { width: narrow ? 100 : 244, overflow: "truncate" } },
        series: [{ type: "bar", barMaxWidth: 16, data: changed.map((r) => ({ value: r.delta, itemStyle: { color: style(r.delta > 0 ? "--bad" : "--good") } })), label: { show: !narrow, position: "right", color: style("--text"), formatter: (p) => (changed[p.dataIndex].growth === null ? "new" : `${sign(Number((100 * changed[p.dataIndex].growth).toFixed(2)))} %`) } }],
      }));
    }
    const tone = (r) => (r.delta > 0 ? "bad" : r.delta < 0 ? "good" : "");
    box.append(new VirtualTable(rows, [
      { title: "name", mono: kind === "function", get: (r) => r.name },
      { title: "A", num: true, width: 150, get: (r) => r.before, show: (r) => (r.before ? full(r.before) : "-") },
      { title: "B", num: true, width: 150, get: (r) => r.after, show: (r) => (r.after ? full(r.after) : "-") },
      { title: "change", num: true, width: 140, get: (r) => Math.abs(r.delta), show: (r) => sign(r.delta), cls: tone },
      { title: "growth", num: true, width: 100, get: (r) => r.growth ?? Infinity, show: (r) => (r.growth === null ? "" : sign(Number((100 * r.growth).toFixed(2))) + " %"), cls: tone },
      { title: "status", width: 100, get: (r) => r.status },
    ], { caption: "changes", sort: 3 }).box);
  };
  out.append(el("div", { class: "tools" }, choice("What", Object.entries(KINDS), "function", show)), box);
  show("function");
}

function java(run) {
  const machines = run.processes.filter((p) => p.origins.length);
  if (!machines.length) return;
  const out = section("java", "Java", "Who made the code that was executed: HotSpot's compilers by tier, its interpreter, its stubs, native code.");
  const name = (o) => o.origin + (o.tier ? ` ${o.tier}` : "");
  const counted = (x) => Object.fromEntries(x.origins.map((o) => [name(o), o.instructions]));
  const threads = machines.flatMap((p) => p.threads).sort((a, b) => b.instructions - a.instructions);
  const rows = [...machines.map((p) => [`all of ${program(p)} ${p.pid}`, counted(p), p.instructions]), ...threads.slice(0, MOST_BARS).map((t) => [`${t.name} ${t.tid}`, counted(t), t.instructions])];
  const totals = tallyAll(rows);
  stacked(out, "Who made the code, by thread", rows, Object.keys(totals).sort((a, b) => totals[b] - totals[a]), (row) => row[2]);
  const whole = sum(machines, (p) => p.instructions);
  const compiled = new Set(["C1", "C2", "native wrapper"]); // as livepro.analyses.origins.methods has it
  const methods = machines.flatMap((process) => process.functions.filter((f) => compiled.has(f.origin)).map((f) => ({ ...f, method: f.function, process })));
  out.append(el("h3", {}, "Compiled methods"), new VirtualTable(methods, [
    { title: "method", mono: true, get: (m) => m.method }, { title: "made by", width: 120, get: name },
    { title: "instructions", num: true, width: 150, get: (m) => m.instructions, show: (m) => full(m.instructions), bar: (m) => m.instructions / whole },
    { title: "share", num: true, width: 80, get: (m) => m.instructions, show: (m) => percent(m.instructions, whole) },
    { title: "SIMD", num: true, width: 80, get: (m) => m.simd / (m.instructions || 1), show: (m) => percent(m.simd, m.instructions) },
    { title: "blocks", num: true, width: 80, get: (m) => m.blocks },
  ], { caption: "compiled methods", sort: 2, open: (m) => {
    const number = m.process.functions.findIndex((f) => f.function === m.method && f.origin === m.origin && f.tier === m.tier);
    if (number >= 0) openFunction(m.process, number);
  } }).box);
}

function snapshots(run) {
  if (!run.snapshots.length) return;
  const out = section("snapshots", "Snapshots");
  out.append(new VirtualTable(run.snapshots, [
    { title: "label", get: (s) => s.label }, { title: "seconds", num: true, width: 110, get: (s) => s.seconds, show: (s) => s.seconds.toFixed(3) },
    { title: "resets", num: true, width: 80, get: (s) => s.resets }, { title: "threads", num: true, width: 90, get: (s) => s.threads.length },
    { title: "instructions", num: true, width: 160, get: (s) => s.instructions, show: (s) => full(s.instructions) },
  ], { caption: "snapshots", sort: 1, up: true }).box);
}

// What the sections above show; anything else that a report has is an analysis that they do not know.
const KNOWN = new Set(("schema livepro engine command exit wall_seconds interval_size instructions rep_instructions rep_iterations distinct_rep_instructions fldcw blocks region sampling warnings stats timeline snapshots processes pid ppid image machine origins methods modules functions code inlined threads tid name intervals moments simd itypes itypes_other unpacked").split(" "));
const TITLES = { caches: "Caches", cachesim: "Caches", cache: "Caches", branches: "Branches", branch: "Branches", mica: "MICA", simpoint: "SimPoint", simpoints: "SimPoint", regions: "Regions" };

/** Analyses of any kind, wherever in the report they are: tables of lists of rows, pairs of the rest. */
function others(run) {
  const found = new Map();
  const look = (object, where) => {
    for (const [key, value] of Object.entries(object)) {
      if (KNOWN.has(key) || value === null || (typeof value === "object" && !Object.keys(value).length)) continue;
      if (!found.has(key)) found.set(key, []);
      found.get(key).push([where, value]);
    }
  };
  look(run, "");
  for (const process of run.processes) {
    look(process, `${program(process)} ${process.pid}`);
    for (const thread of process.threads) look(thread, `${thread.name} ${thread.tid}`);
  }
  for (const [key, values] of found) {
    const out = section("x-" + key.replace(/\W/g, ""), TITLES[key] || key.replaceAll("_", " "));
    for (const [where, value] of values.slice(0, 40)) {
      if (where) out.append(el("h3", {}, where));
      anything(out, value, key);
    }
  }
}

const plain = (value) => (typeof value === "number" ? (Number.isInteger(value) ? full(value) : String(Number(value.toPrecision(5)))) : typeof value === "object" && value !== null ? JSON.stringify(value) : String(value));

function anything(out, value, name, depth = 0) {
  if (Array.isArray(value) && value.length && value.every((row) => row && typeof row === "object" && !Array.isArray(row))) {
    const keys = [...new Set(value.slice(0, 50).flatMap(Object.keys))];
    out.append(new VirtualTable(value, keys.map((key) => {
      const num = value.every((row) => typeof row[key] === "number" || row[key] === null || row[key] === undefined);
      return { title: key.replaceAll("_", " "), num, width: num ? 130 : undefined, get: (row) => (num ? row[key] ?? -1 : plain(row[key] ?? "")), show: (row) => (row[key] === undefined || row[key] === null ? "" : plain(row[key])) };
    }), { caption: name, height: 330 }).box);
  } else if (Array.isArray(value) && value.length > 2 && value.every((n) => typeof n === "number")) {
    chart(out, 190, name, () => ({ grid: { left: 60, right: 16, top: 12, bottom: 26 }, xAxis: { type: "category", data: value.map((_, n) => n) }, yAxis: { type: "value", axisLabel: { formatter: scaled } }, tooltip: { trigger: "axis", formatter: ([p]) => tip(name, [[String(p.name), plain(p.value)]]) }, series: [{ type: "line", showSymbol: false, data: value }] }));
  } else if (value && typeof value === "object" && !Array.isArray(value)) {
    const simple = Object.entries(value).filter(([, v]) => v === null || typeof v !== "object");
    if (simple.length) out.append(pairs(simple.map(([key, v]) => [key.replaceAll("_", " "), plain(v)])));
    for (const [key, v] of Object.entries(value)) {
      if (v === null || typeof v !== "object") continue;
      out.append(el("h3", {}, key.replaceAll("_", " ")));
      if (depth < 4) anything(out, v, key, depth + 1); else out.append(el("p", {}, plain(v)));
    }
  } else out.append(el("p", {}, plain(value)));
}
