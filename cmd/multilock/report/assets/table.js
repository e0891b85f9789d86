// The list of jobs: searched, filtered and sorted; a part of it is in the page.
const PAGE = 200;
const list = { query: "", states: new Set(), host: "", sort: "state", down: false, shown: PAGE, hits: [] };
const TROUBLE_FIRST = ["failed", "dead", "lost", "unknown", "retry", "interrupted", "open", "running", "deleted", "released", "done"];

jobs.forEach((job) => {
  job.last = job.runs[job.runs.length - 1] || null;
  job.hosts = new Set(job.runs.map((run) => run.host));
  job.start = job.runs.reduce((first, run) => (run.known && (first === null || run.from < first) ? run.from : first), null);
  job.took = job.last ? took(job.last) : null;
  const words = [job.name, job.command, job.why, job.state, WORDS[job.state]];
  job.runs.forEach((run) => words.push(hosts[run.host].label, run.user, run.why, run.signal, run.broken ? `taken over ${run.broken.why}` : ""));
  job.words = words.join("\n").toLowerCase();
});

// failures are the rows above the list. The search finds what jobs have printed, too.
const failures = [...document.querySelectorAll("#failures tr[data-job]")].map((row) => ({ row, job: jobs[Number(row.dataset.job)], tail: row.querySelector("pre") }));
for (const { job, tail } of failures) if (tail) job.words += "\n" + tail.textContent.toLowerCase();

function filterFailures() {
  const hits = new Set(list.hits);
  for (const { row, job } of failures) row.hidden = !hits.has(job);
  for (const group of document.querySelectorAll("#failures .group")) {
    group.hidden = !group.querySelector("tr[data-job]:not([hidden])");
    if (list.query) group.open = true;
  }
}

const byNumber = (a, b) => (a === null) - (b === null) || a - b;
const byName = new Intl.Collator("en", { numeric: true });
const COLUMNS = [
  { key: "state", title: "State", compare: (a, b) => TROUBLE_FIRST.indexOf(a.state) - TROUBLE_FIRST.indexOf(b.state) },
  { key: "job", title: "Job", compare: (a, b) => byName.compare(a.name, b.name) },
  { key: "host", title: "Host", compare: (a, b) => (a.last ? a.last.host : -1) - (b.last ? b.last.host : -1) },
  { key: "start", title: "Start", compare: (a, b) => byNumber(a.start, b.start) },
  { key: "took", title: "Took", compare: (a, b) => byNumber(a.took, b.took), number: true },
  { key: "attempts", title: "Runs", compare: (a, b) => a.runs.length - b.runs.length, number: true },
  { key: "why", title: "Why", compare: (a, b) => byName.compare(a.why, b.why) },
  { key: "command", title: "Command", compare: (a, b) => byName.compare(a.command, b.command) },
];

function search() {
  const words = list.query.toLowerCase().split(/\s+/).filter(Boolean);
  list.hits = jobs.filter((job) => (list.states.size === 0 || list.states.has(job.state)) && (list.host === "" || job.hosts.has(Number(list.host))) && words.every((word) => job.words.includes(word)));
  const { compare } = COLUMNS.find((column) => column.key === list.sort);
  list.hits.sort((a, b) => (list.down ? -1 : 1) * compare(a, b) || byName.compare(a.name, b.name) || a.index - b.index);
  list.shown = PAGE;
  fill();
  filterFailures();
}

const body = document.querySelector("#jobs tbody");
function fill() {
  body.replaceChildren(...list.hits.slice(0, list.shown).map(rowOf));
  const count = document.getElementById("count"), more = document.getElementById("more");
  count.textContent = list.hits.length === jobs.length ? plural(jobs.length, "job") : `${list.hits.length.toLocaleString("en")} of ${plural(jobs.length, "job")}`;
  const rest = list.hits.length - list.shown;
  more.hidden = rest <= 0;
  more.textContent = `Show ${Math.min(rest, PAGE)} more (${rest.toLocaleString("en")} are left)`;
  markChosen(view.chosen && view.chosen.job);
}

function rowOf(job) {
  const names = [...job.hosts].map((host) => hosts[host].label);
  const why = job.why || (job.last && job.last.state !== "done" ? ending(job.last) : "");
  const exit = job.last && TROUBLE.has(job.state) && job.why ? ending(job.last) : "";
  const cells = {
    state: element("span", { className: `state s-${job.state}` }, WORDS[job.state]), job: element("button", { type: "button" }, foreign(job.name)),
    host: foreign(names.length > 2 ? `${names[0]} and ${names.length - 1} more` : names.join(", ")), start: moment(job.start), took: duration(job.took),
    attempts: String(job.runs.length), why: foreign([exit, why].filter(Boolean).join(": ")), command: foreign(job.command),
  };
  const row = element("tr", { onclick: () => open(job) });
  for (const column of COLUMNS) {
    const cell = element("td", { className: `c-${column.key} ${column.key === "job" ? "job" : ""} ${column.number ? "number" : ""} ${column.key === "command" ? "line" : ""}` }, cells[column.key]);
    if (column.key === "command") cell.title = job.command.slice(0, 1000);
    row.append(cell);
  }
  row.dataset.job = job.index;
  return row;
}

function open(job) {
  if (!job.last) return;
  reveal(job.runs.find((run) => run.trouble && TROUBLE.has(job.state)) ? [...job.runs].reverse().find((run) => run.trouble) : job.last);
  document.getElementById("chart").scrollIntoView({ block: "nearest" });
}

function markChosen(job) {
  for (const row of body.children) row.classList.toggle("chosen", !!job && row.dataset.job === String(job.index));
}

function head() {
  const row = document.querySelector("#jobs thead tr");
  for (const column of COLUMNS) {
    const button = element("button", { type: "button", onclick: () => sortBy(column.key) }, column.title);
    const cell = element("th", { scope: "col", className: `c-${column.key} ${column.number ? "number" : ""}` }, button);
    cell.dataset.key = column.key;
    row.append(cell);
  }
  markSort();
}

function sortBy(key) {
  list.down = list.sort === key && !list.down;
  list.sort = key;
  markSort();
  search();
}

function markSort() {
  for (const cell of document.querySelectorAll("#jobs th")) {
    if (cell.dataset.key === list.sort) cell.setAttribute("aria-sort", list.down ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  }
}

function filters() {
  const present = TROUBLE_FIRST.filter((state) => jobs.some((job) => job.state === state));
  const group = document.getElementById("states");
  for (const state of present) {
    const button = element("button", { type: "button" }, `${WORDS[state]} ${jobs.filter((job) => job.state === state).length.toLocaleString("en")}`);
    const mark = () => button.setAttribute("aria-pressed", String(list.states.has(state)));
    button.onclick = () => { if (!list.states.delete(state)) list.states.add(state); mark(); changed(); };
    mark();
    group.append(button);
  }
  const select = document.getElementById("host");
  select.append(element("option", { value: "" }, "All hosts"), ...hosts.map((host, i) => element("option", { value: String(i) }, host.label)));
  select.value = list.host;
  select.onchange = () => { list.host = select.value; changed(); };
  const box = document.getElementById("search");
  box.value = list.query;
  box.oninput = () => { list.query = box.value; changed(); };
  document.getElementById("more").onclick = () => { list.shown += PAGE; fill(); };
}

// changed also keeps the search in the address, so that it can be sent to somebody.
function changed() {
  search();
  const wanted = new URLSearchParams();
  if (list.query) wanted.set("q", list.query);
  if (list.states.size) wanted.set("state", [...list.states].join(","));
  if (list.host !== "") wanted.set("host", hosts[Number(list.host)].label);
  try { history.replaceState(null, "", "#" + wanted); } catch { /* some browsers forbid it for files */ }
}

function fromAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  list.query = asked.get("q") || "";
  list.states = new Set((asked.get("state") || "").split(",").filter((state) => STATES.includes(state)));
  const host = hosts.findIndex((one) => one.label === asked.get("host"));
  list.host = host < 0 ? "" : String(host);
}
