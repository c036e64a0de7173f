// What the run was: totals, threads, the line over time, what the instructions were.

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const MOST_BARS = 16;
const MOST_LINES = 8;

const simdOf = (thread) => sum(thread.simd, (row) => row.count);
const threadsOf = (run) => run.processes.flatMap((process) => process.threads.map((thread, place) => ({ process, thread, place })));

function overview(run) {
  const out = section("overview", "At a glance");
  const threads = threadsOf(run), simd = sum(threads, (t) => simdOf(t.thread));
  const pids = new Set(run.processes.map((p) => p.pid)).size, tids = new Set(threads.map((t) => t.thread.tid)).size;
  const tiles = [
    ["Instructions", ...(run.instructions < 1e9 ? [full(run.instructions), scaled(run.instructions)] : [scaled(run.instructions), full(run.instructions)])],
    ["SIMD instructions", percent(simd, run.instructions), full(simd)],
    ["Processes", full(pids), run.processes.length > pids ? `${run.processes.length} images` : ""],
    ["Threads", full(tids), ""],
    ["Basic blocks", full(run.blocks), "distinct"],
    ["Time", run.wall_seconds.toFixed(2) + " s", `${scaled(run.instructions / (run.wall_seconds || 1))}/s, measured`],
    ["Exit status", run.exit === null ? "let go" : String(run.exit), ""],
    ["Engine", run.engine, "livepro " + run.livepro],
  ];
  out.append(el("dl", { class: "tiles" }, tiles.map(([name, value, note]) => el("div", {}, el("dt", {}, name), el("dd", {}, value, note ? el("small", {}, note) : null)))));
  for (const warning of run.warnings) out.append(el("p", { class: "warning", role: "note" }, el("b", {}, "Warning: "), warning));
  const facts = [["Command", run.command.join(" ")], ["rep instructions", `${full(run.rep_instructions)}, ${full(run.rep_iterations)} iterations`]];
  if (run.interval_size) facts.push(["Interval", full(run.interval_size) + " instructions"]);
  if (run.region) facts.push(["Counted", `${run.region.asked}${run.region.began ? "" : " (never began)"}`]);
  if (run.sampling) facts.push(["Windows", `${run.sampling.windows.length}, ${scaled(run.sampling.rate)} instructions/s`]);
  facts.push(...Object.entries(run.stats).map(([name, value]) => [name, typeof value === "number" ? full(value) : typeof value === "string" ? value : JSON.stringify(value)]));
  out.append(el("details", {}, el("summary", {}, "More, with the engine's own figures"), pairs(facts)));
}

function threadTables(run) {
  const out = section("threads", "Threads and processes", "Click a heading to sort. A thread or process that is chosen is shown under Functions.");
  const box = el("div");
  const whole = run.instructions;
  const columns = (of, count) => [
    { title: "instructions", num: true, width: 150, get: (r) => of(r).instructions, show: (r) => full(of(r).instructions), bar: (r) => of(r).instructions / whole },
    { title: "share", num: true, width: 80, get: (r) => of(r).instructions, show: (r) => percent(of(r).instructions, whole) },
    { title: "SIMD", num: true, width: 80, get: (r) => count(r) / (of(r).instructions || 1), show: (r) => percent(count(r), of(r).instructions) },
    { title: "blocks", num: true, width: 90, get: (r) => of(r).blocks, show: (r) => full(of(r).blocks) },
  ];
  const show = (kind) => {
    const table = kind === "threads"
      ? new VirtualTable(threadsOf(run), [
          { title: "thread", get: (r) => r.thread.name },
          ...columns((r) => r.thread, (r) => simdOf(r.thread)),
          { title: "intervals", num: true, width: 95, get: (r) => r.thread.intervals, show: (r) => full(r.thread.intervals) },
          { title: "tid", num: true, width: 90, get: (r) => r.thread.tid }, { title: "process", width: 170, get: (r) => `${program(r.process)} (${r.process.pid})` },
        ], { caption: "threads", sort: 1, open: (r) => openFunctions(r.process, r.place) })
      : new VirtualTable(run.processes, [
          { title: "command", get: (p) => p.command.join(" ") },
          ...columns((p) => p, (p) => sum(p.threads, simdOf)),
          { title: "threads", num: true, width: 85, get: (p) => p.threads.length },
          { title: "pid", num: true, width: 90, get: (p) => p.pid }, { title: "image", num: true, width: 75, get: (p) => p.image },
          { title: "exit", num: true, width: 70, get: (p) => p.exit ?? -1, show: (p) => (p.exit === null ? "-" : String(p.exit)) },
        ], { caption: "processes", sort: 1, open: (p) => openFunctions(p, -1) });
    box.replaceChildren(table.box);
  };
  out.append(el("div", { class: "tools" }, choice("List", [["threads", "Threads"], ["processes", "Processes"]], "threads", show)), box);
  show("threads");
}

function timeLine(run) {
  const moments = threadsOf(run).filter((t) => t.thread.moments);
  if (!run.timeline && !moments.length) return;
  const out = section("time", "Over time", "How fast the run went, how much of it was SIMD, and its phases: stretches in which the same code runs (equal letters, equal code).");
  const box = el("div");
  const show = (kind) => { box.replaceChildren(); if (kind === "time") byTime(box, run.timeline, run); else byInstructions(box, moments); };
  const kinds = [...(run.timeline ? [["time", "By time"]] : []), ...(moments.length ? [["instructions", "By instructions (intervals)"]] : [])];
  if (kinds.length > 1) out.append(el("div", { class: "tools" }, choice("Axis", kinds, kinds[0][0], show)));
  out.append(box);
  show(kinds[0][0]);
}

/** Rectangles [from, to, row, phase] on a time axis, labelled with their phases' letters. */
function band(rects, axis, rows) {
  return {
    type: "custom", xAxisIndex: axis, yAxisIndex: axis, encode: { x: [0, 1], y: 2 }, data: rects, clip: true,
    renderItem: (params, api) => {
      const [from, y] = api.coord([api.value(0), api.value(2)]), [to] = api.coord([api.value(1), api.value(2)]);
      const height = Math.min(22, api.size([0, 1])[1] * 0.8), phase = api.value(3), colours = palette();
      const fill = phase < 0 ? style("--line") : colours[phase % colours.length];
      return {
        type: "rect", shape: { x: from, y: y - height / 2, width: Math.max(1, to - from + 0.5), height }, style: { fill },
        textConfig: { position: "inside" },
        textContent: phase >= 0 && to - from > 14 ? { style: { text: LETTERS[phase % 26], fill: dark() ? "#111" : "#fff", fontSize: 11 } } : undefined,
      };
    },
  };
}

/** Neighbours of one phase as one rectangle. */
function merged(lengths, phases, row) {
  const out = [];
  let at = 0;
  lengths.forEach((length, n) => {
    const last = out[out.length - 1];
    if (last && last[3] === phases[n]) last[1] = at + length; else out.push([at, at + length, row, phases[n]]);
    at += length;
  });
  return out;
}

function byTime(box, line, run) {
  const rates = (counts, first) => {
    const points = [];
    let before = first ? line.seconds[first - 1] : 0, had = 0;
    counts.forEach((count, n) => {
      const now = line.seconds[first + n];
      points.push([before, (count - had) / Math.max(1e-6, now - before)], [now, (count - had) / Math.max(1e-6, now - before)]);
      before = now; had = count;
    });
    return points;
  };
  const shares = (simd, counts, first) => {
    const points = [];
    let hadSimd = 0, had = 0, before = first ? line.seconds[first - 1] : 0;
    counts.forEach((count, n) => {
      const now = line.seconds[first + n], share = count > had ? Math.min(100, (100 * (simd[n] - hadSimd)) / (count - had)) : null;
      points.push([before, share], [now, share]);
      hadSimd = simd[n]; had = count; before = now;
    });
    return points;
  };
  const last = (t) => t.instructions[t.instructions.length - 1] || 0;
  const threads = [...line.threads].sort((a, b) => last(b) - last(a)).filter(last);
  const shown = threads.slice(0, MOST_LINES);
  const all = { name: "all threads", first: 0, instructions: line.instructions, simd: line.simd };
  const lines = (threads.length === 1 ? [] : [all]).concat(shown);
  const known = new Map(threadsOf(run).map(({ process, thread }) => [process.pid + ":" + thread.tid, thread.name])); // its last name
  const name = (t) => visible(t.tid ? `${known.get(t.pid + ":" + t.tid) ?? t.name} ${t.tid}` : t.name);
  const end = line.seconds[line.seconds.length - 1];
  const rects = merged(line.phases.seconds, line.phases.phase, 0);
  const narrow = box.clientWidth < 560, left = narrow ? 58 : 76;
  chart(box, 460, `Rate and SIMD share over ${end.toFixed(1)} seconds, of ${shown.length} threads`, () => ({
    legend: { top: 0, left: 0, right: 0 },
    axisPointer: { link: [{ xAxisIndex: "all" }] },
    tooltip: {
      trigger: "axis",
      formatter: (points) => {
        const seen = new Map(points.filter((p) => p.seriesName in byName && p.value[1] !== null).map((p) => [p.seriesIndex, p]));
        return tip(`${points[0].axisValue.toFixed(2)} s`, [...seen.values()].map((p) => [p.seriesName, p.axisIndex === 1 ? p.value[1].toFixed(1) + " % SIMD" : scaled(p.value[1]) + "/s"]));
      },
    },
    grid: [{ left, right: 16, top: 52, height: 178 }, { left, right: 16, top: 268, height: 90 }, { left, right: 16, top: 384, height: 30 }],
    xAxis: [0, 1, 2].map((gridIndex) => ({ gridIndex, type: "value", min: 0, max: end, name: gridIndex === 2 ? "seconds" : "", nameLocation: "middle", nameGap: 26, axisLabel: { show: gridIndex === 2, formatter: (v) => String(Math.round(v * 100) / 100) }, splitLine: { show: gridIndex < 2 } })),
    yAxis: [
      { gridIndex: 0, type: "value", name: "instructions/s", min: 0, nameTextStyle: { align: "left" }, axisLabel: { formatter: scaled } },
      { gridIndex: 1, type: "value", name: "SIMD", min: 0, nameTextStyle: { align: "left" }, axisLabel: { formatter: (v) => v + " %" } },
      { gridIndex: 2, type: "category", data: ["phase"], axisTick: { show: false } },
    ],
    series: [
      ...lines.map((t) => ({ name: name(t), type: "line", showSymbol: false, xAxisIndex: 0, yAxisIndex: 0, lineStyle: { width: t === all ? 2.5 : 1.5, type: t === all ? "dashed" : "solid" }, data: rates(t.instructions, t.first) })),
      ...lines.map((t) => ({ name: name(t), type: "line", showSymbol: false, xAxisIndex: 1, yAxisIndex: 1, lineStyle: { width: t === all ? 2.5 : 1.5, type: t === all ? "dashed" : "solid" }, data: shares(t.simd, t.instructions, t.first) })),
      { ...band(rects, 2), tooltip: { show: false } },
    ],
  }));
  const byName = Object.fromEntries(lines.map((t) => [name(t), t]));
  const more = threads.length - shown.length + line.left_out;
  box.append(el("p", { class: "note" }, `Looked at ${line.seconds.length} times while it ran: a rate is the mean between two looks.${more > 0 ? ` ${full(more)} more threads are in the sum only.` : ""}`));
}

function byInstructions(box, threads) {
  const shown = [...threads].sort((a, b) => b.thread.instructions - a.thread.instructions).slice(0, MOST_LINES);
  const names = shown.map(({ thread }) => visible(`${thread.name} ${thread.tid}`));
  const longest = Math.max(...shown.map((t) => sum(t.thread.moments.instructions)));
  const narrow = box.clientWidth < 560, left = narrow ? 92 : 150, phases = 28 * shown.length;
  const points = (m) => {
    let at = 0;
    return m.instructions.flatMap((length, n) => {
      const share = length ? (100 * m.simd[n]) / length : 0;
      at += length;
      return [[at - length, share], [at, share]];
    });
  };
  chart(box, 290 + phases, `SIMD share and phases of ${shown.length} threads over their instructions`, () => ({
    legend: { top: 0, left: 0, right: 0 },
    tooltip: {
      trigger: "item",
      formatter: (p) => p.seriesType === "custom"
        ? tip(names[p.value[2]], [["phase", p.value[3] < 0 ? "none" : LETTERS[p.value[3] % 26]], ["instructions", `${full(p.value[0])} to ${full(p.value[1])}`]])
        : tip(p.seriesName, [["at instruction", full(p.value[0])], ["SIMD", p.value[1].toFixed(1) + " %"]]),
    },
    grid: [{ left, right: 22, top: 52, height: 150 }, { left, right: 22, top: 226, height: phases }],
    xAxis: [0, 1].map((gridIndex) => ({ gridIndex, type: "value", min: 0, max: longest, name: gridIndex ? "instructions of the thread" : "", nameLocation: "middle", nameGap: 26, axisLabel: { show: gridIndex === 1, formatter: scaled, hideOverlap: true }, splitLine: { show: gridIndex === 0 } })),
    yAxis: [
      { gridIndex: 0, type: "value", name: "SIMD", min: 0, nameTextStyle: { align: "left" }, axisLabel: { formatter: (v) => v + " %" } },
      { gridIndex: 1, type: "category", inverse: true, data: names, axisTick: { show: false }, axisLabel: { width: left - 16, overflow: "truncate" } },
    ],
    series: [
      ...shown.map((t, n) => ({ name: names[n], type: "line", showSymbol: false, symbolSize: 3, triggerLineEvent: true, xAxisIndex: 0, yAxisIndex: 0, lineStyle: { width: 1.5 }, data: points(t.thread.moments) })),
      band(shown.flatMap((t, n) => merged(t.thread.moments.instructions, t.thread.moments.phase, n)), 1),
    ],
  }));
  if (threads.length > shown.length) box.append(el("p", { class: "note" }, `${full(threads.length - shown.length)} more threads have intervals.`));
}

const MIXES = {
  itypes: ["Instruction types", (thread) => thread.itypes],
  set: ["SIMD by set", (thread) => tally(thread.simd, (row) => row.set)],
  width: ["SIMD by width", (thread) => tally(thread.simd, (row) => (row.scalar ? "scalar" : row.width ? row.width + " bits" : "no vector"))],
  type: ["SIMD by type", (thread) => tally(thread.simd, (row) => row.type.toLowerCase().replaceAll("_", " "))],
};

function tally(rows, key) {
  const out = {};
  for (const row of rows) out[key(row)] = (out[key(row)] || 0) + row.count;
  return out;
}

function mix(run) {
  const out = section("mix", "Instruction mix", "Shares of each thread's instructions.");
  const threads = threadsOf(run).sort((a, b) => b.thread.instructions - a.thread.instructions);
  const box = el("div");
  const show = (kind) => {
    box.replaceChildren();
    const rows = threads.map(({ process, thread }) => [`${thread.name} ${thread.tid}`, MIXES[kind][1](thread), thread.instructions, process]);
    if (threads.length > 1) rows.unshift(["all threads", tallyAll(rows), run.instructions, null]);
    const totals = tallyAll(rows.slice(threads.length > 1 ? 1 : 0));
    const names = Object.keys(totals).filter((n) => totals[n]).sort((a, b) => totals[b] - totals[a]);
    if (!names.length) { box.append(el("p", { class: "empty" }, "No SIMD instructions were executed.")); return; }
    if (kind === "itypes") types(box, rows, names); else stacked(box, MIXES[kind][0] + " by thread", rows.slice(0, MOST_BARS + 1), names, (row) => row[2]);
    if (kind === "itypes") box.append(el("p", { class: "note" }, `An instruction can be of several types: shares sum to more than 100 %.${rows.length > 4 ? " The chart has the threads that executed most." : ""}`));
    const table = new VirtualTable(rows, [
      { title: "thread", get: (r) => r[0] }, { title: "process", width: 130, get: (r) => (r[3] ? program(r[3]) : "") },
      ...names.map((n) => ({ title: n, num: true, width: 122, get: (r) => r[1][n] || 0, show: (r) => full(r[1][n] || 0), bar: (r) => (r[1][n] || 0) / (r[2] || 1) })),
    ], { caption: MIXES[kind][0], height: 330 });
    box.append(el("details", { ontoggle: () => table.draw() }, el("summary", {}, "The numbers of every thread"), table.box));
  };
  out.append(el("div", { class: "tools" }, choice("What", Object.entries(MIXES).map(([key, [title]]) => [key, title]), "itypes", show)), box);
  show("itypes");
}

function tallyAll(rows) {
  const out = {};
  for (const row of rows) for (const [name, count] of Object.entries(row[1])) out[name] = (out[name] || 0) + count;
  return out;
}

/** Types overlap, so their bars stand side by side: a group for each type, a bar for each thread. */
function types(box, rows, names) {
  const shown = rows.slice(0, 4), narrow = box.clientWidth < 560;
  chart(box, 76 + names.length * (10 + 8 * shown.length), "Instruction types by thread", () => ({
    grid: { left: narrow ? 84 : 110, right: 16, top: 38, bottom: 26 },
    legend: { top: 0, left: 0, right: 0 },
    tooltip: { trigger: "axis", axisPointer: { type: "shadow" }, formatter: (points) => tip(names[points[0].dataIndex], points.map((p) => [p.seriesName, `${full(shown[p.seriesIndex][1][names[p.dataIndex]] || 0)}  ${p.value.toFixed(1)} %`])) },
    xAxis: { type: "value", axisLabel: { formatter: (v) => v + " %" } },
    yAxis: { type: "category", inverse: true, data: names.map((n) => n.replaceAll("_", " ")), axisTick: { show: false } },
    series: shown.map(([name, counted, whole]) => ({ name: visible(name), type: "bar", barMaxWidth: 14, barGap: "10%", data: names.map((n) => (100 * (counted[n] || 0)) / (whole || 1)) })),
  }));
}
