"use strict";

// The data come as rows of numbers; a text is a number in a table of texts.
// Times are milliseconds since data.origin, null if they are not known.
const data = JSON.parse(document.getElementById("data").textContent);
const text = (i) => data.texts[i];

const STATES = ["done", "released", "running", "failed", "dead", "lost", "interrupted", "open", "retry", "unknown", "deleted"];
const TROUBLE = new Set(["failed", "dead", "lost", "interrupted", "open", "retry", "unknown"]);
const WORDS = {
  done: "done", released: "released", running: "running", failed: "failed", dead: "holder died", lost: "lock lost",
  interrupted: "interrupted", open: "end unknown", retry: "to be retried", unknown: "unreadable", deleted: "deleted",
};

const jobs = data.jobs.map(([name, state, attempt, why, command, log, refused, missed], index) => ({
  index, name: text(name), state: STATES[state], attempt, why: text(why), command: text(command), log: text(log), refused, missed, runs: [],
}));

const runs = data.runs.map(([job, host, row, start, end, waited, state, attempt, exit, signal, why, command, user, pid, fence, broken, tick, missed], index) => {
  const known = start !== null;
  const to = state === STATES.indexOf("running") ? data.made : end;
  const from = known ? start : to;
  const run = {
    index, job: jobs[job], host, row, known, end, from, to: to === null ? from : Math.max(from, to), waited, state: STATES[state], attempt, exit,
    signal: text(signal), why: text(why), command: text(command), user: text(user), pid, fence, tick, missed,
    broken: broken && { time: broken[0], host: text(broken[1]), pid: broken[2], user: text(broken[3]), why: text(broken[4]) },
  };
  jobs[job].runs.push(run);
  return run;
});
runs.forEach((run) => { run.trouble = TROUBLE.has(run.state); });

const hosts = data.hosts.map(([label, rows]) => ({ label: text(label), rows: Array.from({ length: rows }, () => []) }));
const drawn = runs.filter((run) => run.from !== null);
drawn.forEach((run) => hosts[run.host].rows[run.row].push(run));
hosts.forEach((host) => host.rows.forEach((row) => row.sort((a, b) => a.from - a.waited - (b.from - b.waited) || a.to - b.to)));
const inTime = [...drawn].sort((a, b) => a.from - b.from || a.index - b.index);

// whole is everything, with a little room at both ends.
const whole = (() => {
  let from = Infinity, to = -Infinity;
  for (const run of drawn) {
    from = Math.min(from, run.from - run.waited);
    to = Math.max(to, run.to);
  }
  if (!(from <= to)) [from, to] = [0, 1000];
  const room = Math.max((to - from) * 0.015, 1);
  return { from: from - room, to: to + room };
})();

// peak is the most runs that were under way at one moment.
const peak = (() => {
  const changes = drawn.flatMap((run) => [[run.from, 1], [run.to, -1]]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let now = 0;
  return changes.reduce((most, [, change]) => Math.max(most, (now += change)), drawn.length ? 1 : 0);
})();

const dateOf = (ms) => new Date(data.origin + ms);
const two = (n) => String(n).padStart(2, "0");
const clock = (d) => `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
const day = (d) => `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;

// moment writes a time as far as two moments of the page can differ.
function moment(ms) {
  if (ms === null) return "";
  const d = dateOf(ms);
  const fraction = whole.to - whole.from < 60000 ? "." + String(d.getMilliseconds()).padStart(3, "0") : "";
  return `${day(d)} ${clock(d)}${fraction}`;
}

function duration(ms) {
  if (ms === null) return "";
  if (ms < 1000) return `${Math.round(ms)}ms`;
  const s = ms / 1000;
  if (s < 10) return `${s.toFixed(1)}s`;
  if (s < 60) return `${Math.round(s)}s`;
  const whole = Math.floor(s);
  if (s < 3600) return `${Math.floor(whole / 60)}m${two(whole % 60)}s`;
  if (s < 172800) return `${Math.floor(whole / 3600)}h${two(Math.floor((whole % 3600) / 60))}m`;
  return `${Math.floor(whole / 86400)}d${two(Math.floor((whole % 86400) / 3600))}h`;
}

const plural = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many || one + "s"}`;

// took is how long a run took, null if that is not known.
const took = (run) => (run.known && (run.state === "running" || run.end !== null) ? run.to - run.from : null);

function ending(run) {
  if (run.signal) return `signal: ${run.signal}`;
  return run.exit === null ? "" : `exit ${run.exit}`;
}

// element makes an element. Texts are set as text, never as HTML: they are anybody's.
function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null && child !== ""));
  return made;
}
const foreign = (value) => element("bdi", {}, value);
