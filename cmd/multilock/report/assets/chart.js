// The chart is drawn anew for every change of the view: runs that are narrower than
// a pixel are put together per row and pixel, so that its cost has a limit.
const canvas = document.getElementById("lanes");
const scroller = document.getElementById("scroller");
const spacer = document.getElementById("spacer");

const AXIS = 26, LANE_GAP = 10;
const FAMILY = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif", FONT = `12px ${FAMILY}`, SMALL = `11px ${FAMILY}`;
const view = { from: whole.from, to: whole.to, width: 0, height: 0, left: 0, chosen: null, printing: false };

const rowCount = hosts.reduce((sum, host) => sum + host.rows.length, 0);
const rowHeight = rowCount <= 40 ? 18 : rowCount <= 120 ? 11 : 7;
let at = AXIS + 4;
for (const host of hosts) {
  host.top = at;
  host.height = Math.max(host.rows.length * rowHeight, 18);
  at += host.height + LANE_GAP;
}
const contentHeight = at;

let palette = {};
function readPalette() {
  const style = getComputedStyle(document.documentElement);
  for (const name of [...STATES, "waiting", "back", "panel", "lane", "line", "text", "quiet", "focus", "mark"]) palette[name] = style.getPropertyValue("--" + name).trim();
}

const scale = () => (view.width - view.left) / (view.to - view.from);
const xOf = (ms) => view.left + (ms - view.from) * scale();
const timeAt = (x) => view.from + (x - view.left) / scale();

function prepare(target, width, height) {
  const ratio = window.devicePixelRatio || 1;
  if (target.width !== Math.round(width * ratio) || target.height !== Math.round(height * ratio)) {
    target.width = Math.round(width * ratio);
    target.height = Math.round(height * ratio);
    target.style.height = height + "px";
  }
  const pen = target.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.font = FONT;
  pen.textBaseline = "middle";
  return pen;
}

function measure() {
  view.width = view.printing ? 1000 : Math.max(scroller.clientWidth, 200);
  const available = view.printing ? contentHeight : Math.min(contentHeight, Math.max(window.innerHeight * 0.7, 240), 704);
  view.height = Math.ceil(available);
  spacer.style.height = Math.max(contentHeight - view.height, 0) + "px";
  const pen = prepare(canvas, view.width, view.height);
  const widest = Math.max(...hosts.map((host) => pen.measureText(host.label).width), 30);
  view.left = Math.min(Math.ceil(widest) + 20, Math.max(view.width * 0.22, 76), 220);
  view.left = Math.max(view.left, view.width > 700 ? 96 : 72);
}

function draw() {
  const pen = prepare(canvas, view.width, view.height);
  const scrolled = view.printing ? 0 : scroller.scrollTop;
  pen.fillStyle = palette.back;
  pen.fillRect(0, 0, view.width, view.height);
  const ticks = ticksOf();
  for (const [i, host] of hosts.entries()) {
    const top = host.top - scrolled;
    if (top + host.height < AXIS || top > view.height) continue;
    drawLane(pen, host, top, i, ticks);
  }
  if (view.chosen) drawChosen(pen, scrolled);
  drawAxis(pen, ticks);
  drawOverview();
}

function drawLane(pen, host, top, index, ticks) {
  pen.fillStyle = index % 2 ? palette.back : palette.lane;
  pen.fillRect(0, top - LANE_GAP / 2, view.width, host.height + LANE_GAP);
  pen.strokeStyle = palette.line;
  pen.lineWidth = 1;
  if (index > 0) line(pen, 0, top - LANE_GAP / 2, view.width, top - LANE_GAP / 2);
  for (const tick of ticks.at) line(pen, xOf(tick), top - LANE_GAP / 2, xOf(tick), top + host.height + LANE_GAP / 2);
  pen.save();
  pen.beginPath();
  pen.rect(view.left, AXIS, view.width - view.left, view.height);
  pen.clip();
  host.rows.forEach((row, n) => drawRow(pen, row, top + n * rowHeight));
  pen.restore();
  pen.fillStyle = palette.text;
  pen.fillText(fit(pen, host.label, view.left - 16), 8, top + 9);
}

function line(pen, x1, y1, x2, y2) {
  pen.beginPath();
  pen.moveTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
  pen.lineTo(Math.round(x2) + 0.5, Math.round(y2) + 0.5);
  pen.stroke();
}

// firstAfter finds the first run of a row that ends at or after a time.
function firstAfter(row, time) {
  let low = 0, high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row[middle].to < time) low = middle + 1; else high = middle;
  }
  return low;
}

function drawRow(pen, row, y) {
  const per = scale(), height = rowHeight - (rowHeight > 8 ? 3 : 1), troubles = [];
  let pixel = null, covered = 0;
  const flush = () => {
    if (pixel === null) return;
    pen.globalAlpha = Math.min(0.3 + 0.7 * covered, 1);
    pen.fillStyle = palette.done;
    pen.fillRect(pixel, y, 1, height);
    pen.globalAlpha = 1;
    pixel = null;
  };
  for (let i = Math.max(firstAfter(row, view.from) - 1, 0); i < row.length; i++) {
    const run = row[i];
    const x = xOf(run.from), width = (run.to - run.from) * per;
    if (x - run.waited * per > view.width) break;
    if (run.waited * per >= 2) drawWaiting(pen, x - run.waited * per, x, y + height / 2);
    if (run.trouble) troubles.push(run);
    else if (width < 1.5 && run.state === "done") {
      const here = Math.floor(x);
      if (here !== pixel) { flush(); pixel = here; covered = 0; }
      covered += Math.max(width, 0.1);
    } else {
      flush();
      drawRun(pen, run, x, Math.max(width, 1), y, height);
    }
  }
  flush();
  let last = -Infinity;
  for (const run of troubles) { // on top, never narrower than can be seen, and not twice at one place
    const x = xOf(run.from), width = Math.max((run.to - run.from) * per, 4);
    if (x + width < last + 1) continue;
    drawRun(pen, run, x, width, y, height);
    last = x + width;
  }
}

function drawWaiting(pen, from, to, y) {
  pen.strokeStyle = palette.waiting;
  pen.setLineDash([3, 2]);
  line(pen, Math.max(from, view.left - 4), y, to - 1, y);
  pen.setLineDash([]);
}

// Colours are helped by shapes: who cannot tell the colours sees stripes and marks.
function drawRun(pen, run, x, width, y, height) {
  const left = Math.max(x, view.left - 8), right = Math.min(x + width, view.width + 8);
  if (right <= left) return;
  const gap = right - left > 4 ? 1 : 0;
  pen.fillStyle = palette[run.state];
  pen.fillRect(left, y, right - left - gap, height);
  if (run.state !== "done" && right - left >= 6) stripes(pen, run.state, left, y, right - left - gap, height);
  if (height >= 12) label(pen, run, Math.max(left, view.left), y, right - Math.max(left, view.left) - gap, height);
}

// stripes marks what is not simply done: slanted for failures, dots for what goes
// on or has no known end.
function stripes(pen, state, x, y, width, height) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, width, height);
  pen.clip();
  pen.strokeStyle = palette.back;
  pen.globalAlpha = 0.35;
  pen.lineWidth = 1.5;
  const slants = { failed: 1, retry: 1, dead: 2, lost: -1, interrupted: -1 }[state];
  if (slants) {
    pen.beginPath();
    for (let at = x - height - (x % 7); at < x + width + height; at += 7) {
      if (slants > 0) { pen.moveTo(at, y + height); pen.lineTo(at + height, y); }
      if (slants < 0 || slants === 2) { pen.moveTo(at, y); pen.lineTo(at + height, y + height); }
    }
    pen.stroke();
  } else if (state !== "released") {
    pen.fillStyle = palette.back;
    for (let at = x + 3; at < x + width; at += 7) pen.fillRect(at, y + height - 3, 3, 2);
  }
  pen.restore();
}

function label(pen, run, x, y, width, height) {
  if (width < 34) return;
  pen.font = SMALL;
  const name = run.attempt > 1 ? `${run.job.name} (${run.attempt})` : run.job.name; // a retry
  const shown = fit(pen, name, width - 10, /\d\)?$/.test(name));
  if (shown.length > 3 || shown === name) {
    const wide = pen.measureText(shown).width;
    pen.fillStyle = palette[run.state];
    if (run.state !== "done") pen.fillRect(x + 2, y, wide + 6, height); // no stripes behind letters
    pen.fillStyle = palette.back;
    pen.fillText(shown, x + 5, y + height / 2 + 0.5);
  }
  pen.font = FONT;
}

// fit cuts a text to a width: at its end or, as numbered names differ there, at
// its beginning.
const fitted = new Map();
function fit(pen, value, width, keepsEnd = false) {
  const key = `${pen.font}|${Math.floor(width)}|${keepsEnd}|${value}`;
  if (fitted.has(key)) return fitted.get(key);
  const letters = Array.from(value).slice(0, 200);
  const cut = (n) => (n >= letters.length ? letters.join("") : keepsEnd ? "…" + letters.slice(letters.length - n).join("") : letters.slice(0, n).join("") + "…");
  let low = 0, high = letters.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(cut(middle)).width <= width) low = middle; else high = middle - 1;
  }
  const shown = low > 0 ? cut(low) : "";
  if (fitted.size > 20000) fitted.clear();
  fitted.set(key, shown);
  return shown;
}

function drawChosen(pen, scrolled) {
  const run = view.chosen, host = hosts[run.host];
  const y = host.top - scrolled + run.row * rowHeight, x = xOf(run.from), width = Math.max((run.to - run.from) * scale(), run.trouble ? 4 : 2);
  pen.strokeStyle = palette.mark;
  pen.lineWidth = 2;
  const left = Math.max(x, view.left) - 2, right = Math.min(x + width, view.width) + 2;
  if (right > left) pen.strokeRect(left, y - 2, right - left, rowHeight + (rowHeight > 8 ? 1 : 3));
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 108e5, 216e5, 432e5,
  864e5, 1728e5, 6048e5, 12096e5, 26298e5, 78894e5, 31557e6];

// ticksOf are the times with a label: round ones in the zone of the reader.
function ticksOf() {
  const wanted = (view.to - view.from) / Math.max((view.width - view.left) / 85, 2);
  const step = STEPS.find((s) => s >= wanted) || STEPS[STEPS.length - 1];
  const zone = dateOf((view.from + view.to) / 2).getTimezoneOffset() * 60000;
  const shift = data.origin - zone;
  const found = [];
  for (let t = Math.ceil((view.from + shift) / step) * step - shift; t <= view.to; t += step) found.push(t);
  return { step, at: found };
}

function tickText(ms, step) {
  const d = dateOf(ms);
  if (step >= 864e5) return day(d);
  if (step >= 6e4) return clock(d).slice(0, 5);
  return step >= 1e3 ? clock(d) : clock(d) + "." + String(d.getMilliseconds()).padStart(3, "0");
}

function drawAxis(pen, ticks) {
  pen.fillStyle = palette.panel;
  pen.fillRect(0, 0, view.width, AXIS);
  pen.strokeStyle = palette.line;
  pen.lineWidth = 1;
  line(pen, 0, AXIS, view.width, AXIS);
  line(pen, view.left, 0, view.left, view.height);
  pen.fillStyle = palette.quiet;
  if (view.left > 84) pen.fillText(ticks.step < 864e5 ? day(dateOf(Math.max(view.from, whole.from))) : "", 8, AXIS / 2);
  pen.textAlign = "center";
  let last = view.left;
  for (const tick of ticks.at) {
    const d = dateOf(tick), midnight = ticks.step < 864e5 && d.getHours() + d.getMinutes() + d.getSeconds() + d.getMilliseconds() === 0;
    const shown = midnight ? day(d) : tickText(tick, ticks.step), half = pen.measureText(shown).width / 2, x = xOf(tick);
    if (x - half < last + 6 || x + half > view.width - 2) continue;
    pen.fillText(shown, x, AXIS / 2);
    last = x + half;
  }
  pen.textAlign = "start";
}
