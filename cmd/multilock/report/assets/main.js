function legend() {
  const place = document.getElementById("legend");
  for (const state of STATES.filter((one) => runs.some((run) => run.state === one))) {
    const swatch = element("canvas", { className: "swatch" });
    place.append(element("li", {}, swatch, WORDS[state]));
    swatch.dataset.state = state;
  }
  if (drawn.some((run) => run.waited >= 1000)) {
    const swatch = element("canvas", { className: "swatch" });
    swatch.dataset.state = "waiting";
    place.append(element("li", {}, swatch, "waiting for the lock"));
  }
}

function paintLegend() {
  for (const swatch of document.querySelectorAll(".swatch")) {
    const pen = prepare(swatch, 22, 12), state = swatch.dataset.state;
    pen.clearRect(0, 0, 22, 12);
    if (state === "waiting") { pen.strokeStyle = palette.waiting; pen.lineWidth = 1; pen.setLineDash([3, 2]); line(pen, 0, 6, 22, 6); pen.setLineDash([]); continue; }
    pen.fillStyle = palette[state];
    pen.fillRect(0, 0, 22, 12);
    if (state !== "done") stripes(pen, state, 0, 0, 22, 12);
  }
}

function localTimes() {
  for (const one of document.querySelectorAll("time")) {
    const d = new Date(one.dateTime);
    if (!Number.isNaN(d.getTime())) one.textContent = `${day(d)} ${clock(d)}`;
  }
  document.getElementById("zone").textContent = `Times are in the zone ${Intl.DateTimeFormat().resolvedOptions().timeZone}`;
}

function refresh() {
  readPalette();
  measure();
  paintLegend();
  draw();
}

// print draws the lanes in light colours and in full, to be scaled to the paper.
function print(on) {
  if (view.printing === on) return;
  view.printing = on;
  document.documentElement.classList.toggle("printing", on);
  refresh();
}

function start() {
  document.documentElement.classList.add("scripted");
  document.getElementById("list").hidden = false;
  document.getElementById("chart").hidden = drawn.length === 0;
  canvas.setAttribute("aria-label", `Timeline of ${plural(runs.length, "run")} of ${plural(jobs.length, "job")} on ${plural(hosts.length, "host")}`);
  canvas.dataset.hosts = hosts.length;
  canvas.dataset.rows = rowCount;
  localTimes();
  fromAddress();
  head();
  filters();
  search();
  legend();
  refresh();
  watchKeys();
  watchPointers();
  watchWheel();
  document.getElementById("zoom-in").onclick = () => zoom(0.6);
  document.getElementById("zoom-out").onclick = () => zoom(1 / 0.6);
  document.getElementById("zoom-all").onclick = zoomOut;
  document.getElementById("next-trouble").onclick = () => step(1, troubles);
  document.getElementById("next-trouble").hidden = troubles.length === 0;
  scroller.addEventListener("scroll", redraw);
  new ResizeObserver(refresh).observe(scroller);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refresh);
  window.addEventListener("beforeprint", () => print(true));
  window.addEventListener("afterprint", () => print(false));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    document.getElementById("search").focus();
  });
}
start();
