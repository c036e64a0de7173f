// The page: its head, its sections in order, the theme, and which of two runs is shown.

function heading(run, chosen) {
  const themes = [["", "Auto"], ["light", "Light"], ["dark", "Dark"]];
  const top = document.getElementById("top");
  top.replaceChildren(el("h1", {}, el("code", {}, run.command.join(" ")), el("small", {}, D.runs.length > 1 ? `livepro report of ${D.names[chosen]}` : "livepro report")));
  if (D.runs.length > 1) top.append(choice("Run", D.names.map((name, n) => [n, `${"AB"[n]}: ${name}`]), chosen, show));
  top.append(choice("Theme", themes, document.documentElement.dataset.theme || "", (theme) => {
    if (theme) document.documentElement.dataset.theme = theme; else delete document.documentElement.dataset.theme;
    redraw();
  }));
}

function show(chosen) {
  const run = D.runs[chosen];
  sections.length = 0;
  document.getElementById("main").replaceChildren();
  charts.clear();
  heading(run, chosen);
  overview(run);
  if (D.diff) comparison(D.diff);
  threadTables(run);
  timeLine(run);
  mix(run);
  functions(run);
  java(run);
  others(run);
  snapshots(run);
  document.getElementById("nav").replaceChildren(el("ul", {}, sections.map(([id, title]) => el("li", {}, el("a", { href: "#" + id }, title)))));
  document.getElementById("foot").textContent = `Written by livepro ${D.livepro}. Charts: Apache ECharts (Apache License 2.0).`;
}

async function start() {
  D = JSON.parse(new TextDecoder().decode(await inflate(document.getElementById("data").textContent)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  show(D.runs.length - 1);
  document.documentElement.dataset.ready = "yes";
}
start();
