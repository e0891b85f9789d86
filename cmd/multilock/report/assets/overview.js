// The overview above the lanes: how much was under way, and where the lanes are.
const overview = document.getElementById("overview");

// busyBins is how many runs were under way in each of n equal parts of all the time.
function busyBins(n) {
  const bins = new Float64Array(n), slope = new Float64Array(n + 1), span = whole.to - whole.from;
  for (const run of drawn) {
    const a = ((run.from - whole.from) / span) * n, b = ((run.to - whole.from) / span) * n;
    const first = Math.min(Math.floor(a), n - 1), last = Math.min(Math.floor(b), n - 1);
    if (first === last) { bins[first] += b - a; continue; }
    bins[first] += first + 1 - a;
    bins[last] += b - last;
    slope[first + 1]++;
    slope[last]--;
  }
  for (let i = 0, level = 0; i < n; i++) { level += slope[i]; bins[i] += level; }
  return bins;
}

let bins = new Float64Array(0);
const overviewX = (ms) => view.left + ((ms - whole.from) / (whole.to - whole.from)) * (view.width - view.left);

function drawOverview() {
  const height = 48, pen = prepare(overview, overview.clientWidth, height), count = Math.max(Math.floor(view.width - view.left), 10);
  if (bins.length !== count) bins = busyBins(count);
  const most = bins.reduce((a, b) => Math.max(a, b), 0);
  pen.fillStyle = palette.panel;
  pen.fillRect(0, 0, overview.clientWidth, height);
  pen.fillStyle = palette.done;
  pen.globalAlpha = 0.55;
  bins.forEach((value, i) => { const tall = (value / Math.max(most, 1e-9)) * (height - 6); pen.fillRect(view.left + i, height - tall, 1, tall); });
  pen.globalAlpha = 1;
  for (const run of drawn) {
    if (!run.trouble) continue;
    pen.fillStyle = palette[run.state];
    pen.fillRect(overviewX(run.to) - 1, height - 8, 2, 8);
  }
  drawWindow(pen, overviewX(view.from), overviewX(view.to), height);
  pen.fillStyle = palette.quiet;
  pen.font = SMALL;
  pen.fillText("at a time,", 8, 16);
  pen.fillText(`up to ${peak}`, 8, 31);
}

// drawWindow shows which part of all the time the lanes show.
function drawWindow(pen, left, right, height) {
  if (left <= view.left + 0.5 && right >= view.width - 0.5) return;
  pen.fillStyle = palette.back;
  pen.globalAlpha = 0.65;
  pen.fillRect(view.left, 0, left - view.left, height);
  pen.fillRect(right, 0, view.width - right, height);
  pen.globalAlpha = 1;
  pen.strokeStyle = palette.focus;
  pen.lineWidth = 2;
  pen.strokeRect(left + 1, 1, Math.max(right - left - 2, 2), height - 2);
}
