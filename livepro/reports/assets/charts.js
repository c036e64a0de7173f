// Charts, by ECharts: drawn again in the colours of the theme, their tips as text nodes.

const PALETTES = {
  light: ["#2f66c9", "#c8610a", "#1d8a5e", "#a83c91", "#7257cf", "#b3362b", "#5b7f16", "#0b7f97", "#8a5f37", "#5f6775"],
  dark: ["#78a6ff", "#f2a055", "#55cb9d", "#e387cf", "#b8a4fb", "#f37f75", "#a8cf60", "#58c6dd", "#d2a67c", "#a4acb9"],
};
const charts = new Set();

const dark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};
const palette = () => PALETTES[dark() ? "dark" : "light"];
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A tip: a heading and rows of name and value. */
function tip(title, rows) {
  return el("div", { class: "tip" }, el("b", {}, title), rows.map(([name, value]) => el("div", {}, el("span", {}, name), el("span", {}, value))));
}

/** A chart in `parent`; `make` returns its option in the colours of the moment, `click` gets what was clicked on. */
function chart(parent, height, label, make, click) {
  const box = el("div", { class: "chart", role: "img", "aria-label": label, style: `height:${height}px` });
  parent.append(box);
  const drawn = echarts.init(box, null, { renderer: "canvas" });
  const draw = () => {
    const text = style("--text"), dim = style("--dim"), line = style("--line");
    const axis = { axisLabel: { color: dim }, axisLine: { lineStyle: { color: line } }, splitLine: { lineStyle: { color: line } }, nameTextStyle: { color: dim } };
    const option = make();
    const axes = (given) => [].concat(given || []).map((a) => ({ ...a, axisLabel: { ...axis.axisLabel, ...a.axisLabel }, axisLine: { ...axis.axisLine, ...a.axisLine }, splitLine: { ...axis.splitLine, ...a.splitLine }, nameTextStyle: { ...axis.nameTextStyle, ...a.nameTextStyle } }));
    drawn.setOption({
      animation: false, color: palette(), textStyle: { fontFamily: "inherit" }, ...option,
      xAxis: axes(option.xAxis), yAxis: axes(option.yAxis),
      legend: option.legend && { type: "scroll", textStyle: { color: text }, pageTextStyle: { color: text }, pageIconColor: text, inactiveColor: line, ...option.legend },
      tooltip: { confine: true, backgroundColor: style("--panel"), borderColor: line, textStyle: { color: text, fontSize: 13 }, ...option.tooltip },
    }, true);
  };
  draw();
  if (click) drawn.on("click", click);
  const sized = new ResizeObserver(() => drawn.resize());
  sized.observe(box);
  const handle = { draw, box, resize: (pixels) => { box.style.height = pixels + "px"; drawn.resize(); } };
  charts.add(handle);
  return handle;
}

function redraw() {
  for (const one of charts) if (one.box.isConnected) one.draw(); else charts.delete(one);
}

/** Bars of one row each, stacked by series: rows [name, {series: count}], shares of `whole(row)`. */
function stacked(parent, label, rows, series, whole) {
  const narrow = parent.clientWidth < 560;
  return chart(parent, 70 + 26 * rows.length + (series.length > 6 ? 8 : 0), label, () => ({
    grid: { left: narrow ? 104 : 190, right: 16, top: 38, bottom: 26 },
    legend: { top: 0, left: 0, right: 0 },
    tooltip: {
      trigger: "axis", axisPointer: { type: "shadow" },
      formatter: (points) => {
        const [name, counted] = rows[points[0].dataIndex];
        const shown = series.filter((s) => counted[s]).map((s) => [s, `${full(counted[s])}  ${percent(counted[s], whole(rows[points[0].dataIndex]))}`]);
        return tip(name, shown.length ? shown : [["none", ""]]);
      },
    },
    xAxis: { type: "value", max: 100, axisLabel: { formatter: (v) => v + " %" } },
    yAxis: { type: "category", inverse: true, data: rows.map(([name]) => visible(name)), axisTick: { show: false }, axisLabel: { width: narrow ? 92 : 176, overflow: "truncate" } },
    series: series.map((name) => ({ name, type: "bar", stack: "all", barMaxWidth: 18, data: rows.map((row) => (100 * (row[1][name] || 0)) / (whole(row) || 1)) })),
  }));
}
