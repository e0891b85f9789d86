// Zoom, pan, pointing and keys.
let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

const SMALLEST = 2; // milliseconds over the whole width

function show(from, to) {
  const span = Math.min(Math.max(to - from, SMALLEST), whole.to - whole.from);
  const start = Math.min(Math.max((from + to - span) / 2, whole.from), whole.to - span);
  view.from = start;
  view.to = start + span;
  redraw();
}

function zoom(factor, around = (view.from + view.to) / 2) {
  show(around - (around - view.from) * factor, around + (view.to - around) * factor);
}

const pan = (share) => show(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));
const zoomOut = () => show(whole.from, whole.to);

// found is what is drawn at a place: several runs where they share a pixel.
function found(x, y) {
  const content = y + scroller.scrollTop;
  if (x < view.left || y < AXIS) return [];
  const host = hosts.find((h) => content >= h.top && content < h.top + h.height);
  const row = host && host.rows[Math.floor((content - host.top) / rowHeight)];
  if (!row) return [];
  const near = [], low = timeAt(x - 4), high = timeAt(x + 1);
  for (let i = Math.max(firstAfter(row, low), 0); i < row.length && row[i].from - row[i].waited <= high; i++) near.push(row[i]);
  const exact = near.filter((run) => run.from <= timeAt(x) && timeAt(x) <= run.to && (run.to - run.from) * scale() >= 3);
  const trouble = near.filter((run) => run.trouble && xOf(run.from) <= x && x <= Math.max(xOf(run.to), xOf(run.from) + 4));
  return exact.length ? exact : trouble.length ? trouble : near;
}

const tip = document.getElementById("tip");
function pointAt(event) {
  const near = found(event.offsetX, event.offsetY);
  tip.hidden = near.length === 0;
  if (tip.hidden) return;
  tip.replaceChildren(...(near.length === 1 ? tipOf(near[0]) : tipOfMany(near)));
  tip.style.left = Math.max(Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8), 4) + "px";
  const below = event.clientY + 18;
  tip.style.top = (below + tip.offsetHeight > window.innerHeight ? event.clientY - tip.offsetHeight - 10 : below) + "px";
}

function tipOf(run) {
  const parts = [WORDS[run.state], ending(run), duration(took(run)), run.attempt > 1 ? `attempt ${run.attempt}` : ""].filter(Boolean);
  return [element("b", {}, foreign(run.job.name)), element("span", {}, parts.join(", ")), element("br"), element("span", { className: "quiet" }, moment(run.known ? run.from : run.to))];
}

function tipOfMany(near) {
  const counts = new Map();
  near.forEach((run) => counts.set(run.state, (counts.get(run.state) || 0) + 1));
  const words = [...counts].map(([state, n]) => `${n} ${WORDS[state]}`).join(", ");
  return [element("b", {}, plural(near.length, "run")), element("span", {}, words), element("br"),
    element("span", { className: "quiet" }, "from ", foreign(near[0].job.name), " to ", foreign(near[near.length - 1].job.name), "; click to zoom in")];
}

const details = document.getElementById("details");
function choose(run) {
  view.chosen = run;
  details.hidden = !run;
  if (run) describe(run);
  markChosen(run && run.job);
  redraw();
}

function describe(run) {
  const job = run.job;
  const close = element("button", { type: "button", className: "close", title: "Close (Esc)", onclick: () => { choose(null); canvas.focus(); } }, "×");
  close.setAttribute("aria-label", "Close");
  details.replaceChildren(close, element("h3", {}, foreign(job.name), ` — ${WORDS[job.state]}`), listOf([
    ["Command", job.command], ["Why", job.why], ["Output", job.log], ["Not acquired", job.refused ? plural(job.refused, "time") : ""],
    ["Missed ticks", job.missed ? plural(job.missed, "tick") : ""],
  ]));
  const printed = failures.find((one) => one.job === job && one.tail);
  if (printed) details.append(element("pre", { className: "tail" }, printed.tail.textContent));
  const most = 20, first = Math.max(Math.min(job.runs.indexOf(run) - most / 2, job.runs.length - most), 0);
  const some = job.runs.slice(first, first + most);
  if (some.length < job.runs.length) details.append(element("p", { className: "quiet small" }, `${plural(job.runs.length, "run")}, of which ${some.length} around the one chosen are shown`));
  some.forEach((one) => details.append(element("h4", {}, one === run && job.runs.length > 1 ? "▸ " : "", titleOf(one)), listOf(factsOf(one, job))));
}

const titleOf = (run) => [run.attempt ? `Attempt ${run.attempt}` : "Run", WORDS[run.state], ending(run)].filter(Boolean).join(", ");

function factsOf(run, job) {
  const by = [run.pid > 0 ? `pid ${run.pid}` : "", run.user && `by ${run.user}`].filter(Boolean).join(" ");
  const broken = run.broken;
  return [
    ["Host", [hosts[run.host].label, by].filter(Boolean).join(", ")],
    ["Started", run.known ? moment(run.from) : "not written down"],
    ["Ended", run.state === "running" || run.state === "dead" ? "" : run.end === null ? "not written down" : moment(run.end)],
    ["Took", duration(took(run))], ["Waited", run.waited >= 1 ? duration(run.waited) + " for the lock" : ""],
    ["Tick", run.tick === null ? "" : moment(run.tick) + (run.missed ? `, after ${plural(run.missed, "tick")} without a run` : "")],
    ["Fence", run.fence || ""], ["Command", run.command === job.command ? "" : run.command], ["Why", run.why === job.why && job.runs.length === 1 ? "" : run.why],
    ["Cleared", broken ? `${moment(broken.time)} by ${broken.host}${broken.pid > 0 ? ` pid ${broken.pid}` : ""}${broken.user ? ` (${broken.user})` : ""}` : ""],
    ["Evidence", broken && broken.why !== run.why ? broken.why : ""],
  ];
}

function listOf(facts) {
  const list = element("dl", {});
  for (const [name, value] of facts) if (value !== "") list.append(element("dt", {}, name), element("dd", {}, foreign(String(value))));
  return list;
}

// reveal brings a run into view, and zooms in until it can be seen.
function reveal(run) {
  const length = run.to - run.from, span = view.to - view.from;
  if (run.from === null) return choose(run);
  const wanted = length > 0 ? Math.min(span, length * 60) : span;
  const enough = length * scale() >= 6 || length === 0;
  const middle = (run.from + run.to) / 2;
  if (!enough || run.to < view.from || run.from > view.to) show(middle - wanted / 2, middle + wanted / 2);
  const y = hosts[run.host].top + run.row * rowHeight;
  if (y < scroller.scrollTop + AXIS || y + rowHeight > scroller.scrollTop + view.height) scroller.scrollTop = y - view.height / 2;
  choose(run);
}

function step(direction, among = inTime) {
  if (among.length === 0) return;
  const here = view.chosen ? inTime.indexOf(view.chosen) : inTime.findIndex((run) => run.from >= view.from) - direction;
  const places = among === inTime ? null : among.map((run) => inTime.indexOf(run));
  const next = places ? places.find((place) => place > here) : Math.min(Math.max(here + direction, 0), inTime.length - 1);
  reveal(inTime[next === undefined ? places[0] : next]);
}

const troubles = inTime.filter((run) => run.trouble);
const KEYS = {
  ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1), PageUp: () => pan(-0.9), PageDown: () => pan(0.9),
  ArrowUp: () => { scroller.scrollTop -= 3 * rowHeight; }, ArrowDown: () => { scroller.scrollTop += 3 * rowHeight; },
  "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), 0: zoomOut, Home: zoomOut,
  n: () => step(1), p: () => step(-1), f: () => step(1, troubles), Escape: () => choose(null),
};

function watchKeys() {
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
    event.preventDefault();
    KEYS[event.key]();
  });
}

// watchPointers drags with one pointer and pinches with two.
function watchPointers() {
  const pointers = new Map();
  let moved = 0;
  const apart = () => { const [a, b] = [...pointers.values()]; return Math.abs(a.x - b.x) || 1; };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, { x: event.offsetX });
    if (pointers.size === 1) moved = 0;
    tip.hidden = true;
  });
  canvas.addEventListener("pointermove", (event) => {
    const pointer = pointers.get(event.pointerId);
    if (!pointer) return pointAt(event);
    const before = pointers.size === 2 ? apart() : 0, dx = event.offsetX - pointer.x;
    pointer.x = event.offsetX;
    moved += Math.abs(dx);
    if (pointers.size === 2) return zoom(before / apart(), timeAt(([...pointers.values()][0].x + [...pointers.values()][1].x) / 2));
    canvas.classList.toggle("moving", moved > 3);
    if (moved > 3) show(view.from - dx / scale(), view.to - dx / scale());
  });
  const end = (event) => {
    const alone = pointers.delete(event.pointerId) && pointers.size === 0;
    canvas.classList.remove("moving");
    if (alone && event.type === "pointerup" && moved <= 3) click(event);
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
}

function click(event) {
  const near = found(event.offsetX, event.offsetY);
  if (near.length <= 1) return choose(near[0] || null);
  zoom(0.2, timeAt(event.offsetX));
}

function watchWheel() {
  canvas.addEventListener("wheel", (event) => {
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (event.ctrlKey || event.metaKey) zoom(Math.exp(Math.max(Math.min(event.deltaY, 100), -100) * 0.004), timeAt(event.offsetX));
    else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) pan(sideways / view.width);
    else return;
    event.preventDefault();
  }, { passive: false });
  const move = (event) => {
    if (!event.buttons) return;
    const middle = whole.from + ((event.offsetX - view.left) / (view.width - view.left)) * (whole.to - whole.from), half = (view.to - view.from) / 2;
    show(middle - half, middle + half);
  };
  overview.addEventListener("pointerdown", (event) => { overview.setPointerCapture(event.pointerId); move(event); });
  overview.addEventListener("pointermove", move);
}
