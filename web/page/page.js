// The runs of a coordinator as they go on, by server-sent events.
import { CLOCK, about, curve, dayAndTime, draw, mapOfJobs, plot, rangeOf, short, span, thousands } from "/pictures.js";

const by = (id) => document.getElementById(id);
const EVENTS_SHOWN = 60;
const HOSTS_SHOWN = 12;

/** Changes a text only where it differs, so that nobody who reads or selects it is disturbed. */
function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** As many children as there are items; each is filled in place. */
function fill(parent, items, make, change) {
  while (parent.children.length > items.length) parent.lastElementChild.remove();
  items.forEach((item, index) => {
    if (!parent.children[index]) parent.append(make());
    change(parent.children[index], item);
  });
}

/** Makes an element with children of these kinds and classes. */
function element(name, children = []) {
  const made = document.createElement(name);
  for (const [kind, style] of children) {
    const child = document.createElement(kind);
    if (style) child.className = style;
    made.append(child);
  }
  return made;
}

/**
 * A row for a table, with a cell for each of its headings. A narrow screen shows a row as a card, each cell with its heading.
 * As it is no table then, the roles of one are spelt out.
 */
function rowFor(body) {
  const row = element("tr");
  row.setAttribute("role", "row");
  [...body.closest("table").tHead.rows[0].cells].forEach((head, index) => {
    const cell = document.createElement(index ? "td" : "th");
    cell.className = head.className;
    cell.setAttribute("role", index ? "cell" : "rowheader");
    if (index) cell.dataset.label = head.textContent;
    row.append(cell);
  });
  return row;
}

/** Jobs that are leased, and how many of them are being counted: the others wait in their workers' queues. */
function leasedOf({ run, leased }) {
  const counting = detail?.run === run ? Math.min(detail.counting, leased) : 0;
  return `leased ${thousands(leased)}${leased ? `: ${thousands(counting)} being counted, ${thousands(leased - counting)} queued` : ""}`;
}

const hours = (number) => (number < 1000 ? number.toPrecision(3) : thousands(Math.round(number)));
const percent = (share) => `${(100 * (share < 1 ? Math.min(share, 0.999) : 1)).toFixed(1)} %`;
const bounds = (interval, write) => `${write(interval.low)} to ${write(interval.high)}`;

let picture;
let detail;
let cellAt = () => undefined;

/** Jobs done, or stored while the run is being planned. */
function jobsOf(run) {
  if (run.state === "planning") return `${thousands(run.planned)} of about ${thousands(run.jobs)} planned`;
  return `${thousands(run.done)} of ${thousands(run.jobs)}`;
}

/** Shows a fact, or hides it where there is none. */
function fact(id, value, more = "") {
  by(id).parentElement.hidden = value === undefined;
  put(by(id), value ?? "");
  put(by(`${id}-more`), more);
}

/** How long it has been counted or was, with how long it had waited for its first lease, where that is longer. */
function showElapsed(run, open) {
  const until = run.finished_at_ms ?? (open ? picture.at_ms : undefined);
  const started = run.started_at_ms ?? (run.finished_at_ms ? run.created_at_ms : undefined);
  put(by("elapsed-name"), run.finished_at_ms ? "Took" : "Elapsed");
  if (until === undefined) return fact("elapsed");
  if (started === undefined) return fact("elapsed", "not begun", `submitted ${span((until - run.created_at_ms) / 1000)} ago`);
  const [waited, took] = [started - run.created_at_ms, until - started];
  const queue = waited > took ? `, after ${span(waited / 1000)} in the queue` : "";
  fact("elapsed", span(took / 1000), `since ${dayAndTime(started, picture.at_ms)}${queue}`);
}

/** Problems of the last hour, of this run or of no run. */
function showProblems(run) {
  const recent = (event) => event.problem && picture.at_ms - event.at_ms < 3_600_000 && (event.run ?? run.run) === run.run;
  const problems = (picture.events ?? []).filter(recent);
  const quarantined = run.quarantined ? `${thousands(run.quarantined)} jobs in quarantine` : "";
  fact("problems", problems.length ? thousands(problems.length) : "none", problems.at(-1)?.text ?? quarantined);
  by("problems").classList.toggle("wrong", problems.length > 0);
}

/** When it will end, if the time left is known. What comes later has its place, so that nothing moves then. */
function showEnd({ time_left_s: left }, open) {
  if (!open || !left) return fact("end", open ? "-" : undefined);
  const at = (seconds) => dayAndTime(picture.at_ms + 1000 * seconds, picture.at_ms);
  fact("end", at(left.value), bounds(left, at));
}

/** The report and the ledger of a finished run, or the commands that write them. */
function showDocuments(run) {
  by("documents").hidden = !run.total || picture.documents !== true;
  by("commands").hidden = !run.total || picture.documents !== false;
  for (const name of ["report", "ledger"]) by(name).href = `/${name}?run=${encodeURIComponent(run.run)}`;
  put(by("report-command"), `nqueens report ${run.run} --db FILE --html --output ${run.file_stem}.html`);
  put(by("ledger-command"), `nqueens export ${run.run} --db FILE --format ledger --output ${run.file_stem}.ledger`);
}

function showRun(run) {
  by("run").hidden = !run;
  by("empty").hidden = Boolean(run);
  if (!run) return;
  const open = run.state === "planning" || run.state === "active" || run.state === "paused";
  put(by("run-title"), run.subject);
  put(by("run-state"), run.stuck ? "needs attention" : run.state);
  by("run-state").className = `state ${run.stuck ? "stuck" : run.state}`;
  put(by("run-name"), `run ${run.run}`);
  by("bar").value = run.share;
  put(by("share"), percent(run.share));
  document.title = `${percent(run.share)} of ${run.subject} - N-Queens`;

  const estimate = run.estimated_total;
  put(by("total-name"), estimate ? "TOTAL, estimated" : "TOTAL");
  put(by("total"), run.total ? thousands(run.total) : estimate ? about(estimate.value) : "not known yet");
  const totalMore = run.standing ?? run.reason ?? (estimate ? bounds(estimate, about) : "");
  put(by("total-more"), totalMore);

  for (const name of ["count2", "count4", "count8", "unique"]) {
    fact(name, run[name] ? thousands(run[name]) : undefined);
  }
  put(by("unique-more"), "solutions up to rotation and reflection");
  const left = run.time_left_s;
  fact("left", open ? (left ? span(left.value) : run.waits_for ?? "-") : undefined, left ? bounds(left, span) : "");
  showEnd(run, open);
  showElapsed(run, open);
  const speed = run.states_per_s && `${short(run.states_per_s)} states/s`;
  fact("speed", open ? speed ?? "none" : undefined, run.threads ? `on ${run.threads.toFixed(1)} threads` : "");
  fact("counting", open ? thousands(run.busy_workers ?? 0) : undefined);
  if (open) showProblems(run);
  else fact("problems");
  const quarantined = run.quarantined ? `, ${thousands(run.quarantined)} in quarantine` : "";
  const working = run.leased ? `${thousands(run.leased)} leased` : "";
  fact("jobs", jobsOf(run), `${working}${quarantined}`.replace(/^, /, ""));
  fact("cost", hours(run.core_hours),
    `processor time; ${hours(run.core_hours_standing)} of it for results that stand`);
  fact("checks", ...run.checked);
  fact("plan", run.plan, run.plan_words);
  showDocuments(run);

  put(by("key-done"), `done ${thousands(run.done)}`);
  put(by("key-leased"), leasedOf(run));
  put(by("key-ready"), `waiting ${thousands(run.jobs - run.done - run.leased - run.quarantined)}`);
  put(by("key-quarantined"), `in quarantine ${thousands(run.quarantined)}`);
}

function showRuns(runs, chosen) {
  by("runs-section").hidden = runs.length === 0;
  const make = () => {
    const row = rowFor(by("runs"));
    row.firstElementChild.append(document.createElement("a"));
    return row;
  };
  fill(by("runs"), [...runs].reverse(), make, (row, run) => {
    const link = row.firstElementChild.firstElementChild;
    put(link, run.run);
    link.href = `/?run=${encodeURIComponent(run.run)}`;
    if (run.run === chosen) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
    const total = run.total ? thousands(run.total) : run.estimated_total ? `≈ ${about(run.estimated_total.value)}` : "-";
    const left = run.time_left_s ? span(run.time_left_s.value) : run.waits_for ?? "-";
    [run.n, run.plan, run.state, percent(run.share), jobsOf(run), left, total].forEach((text, index) => {
      put(row.children[index + 1], String(text));
    });
  });
}

/** The paces of each worker since this page was opened, one a picture. */
const PACES = 300;
const pacesOf = new Map();

function showWorkers({ workers, workers_seen: seen, workers_listed: all, busy_workers: busy }) {
  fill(by("workers"), workers, () => rowFor(by("workers")), (row, worker) => {
    const silent = worker.silent_ms / 1000;
    row.className = silent > 60 ? "silent" : "";
    const paces = pacesOf.get(worker.id) ?? [];
    pacesOf.set(worker.id, [...paces, worker.states_per_s ?? 0].slice(-PACES));
    const heard = worker.draining ? "draining" : silent < 10 ? "now" : `${span(silent)} ago`;
    const pace = worker.states_per_s ? short(worker.states_per_s) : "-";
    const texts = [worker.name || `worker ${worker.id}`, worker.id, worker.kernels[0] ?? "-", thousands(worker.threads),
      thousands(worker.leases), thousands(worker.accepted), pace, heard];
    texts.forEach((text, index) => put(row.children[index], String(text)));
    row.children[2].title = worker.device;
    const place = row.children[8];
    if (!place.firstChild) draw(place, "svg", { class: "small", viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true" });
    curve(place.firstChild, pacesOf.get(worker.id));
  });
  const shown = new Set(workers.map((worker) => worker.id));
  for (const id of pacesOf.keys()) if (!shown.has(id)) pacesOf.delete(id);
  const hidden = all > workers.length ? `; the ${thousands(workers.length)} with the most jobs are shown` : "";
  put(by("workers-more"), all ? `${thousands(seen)} seen, ${thousands(busy)} busy${hidden}` : "No worker has registered yet.");
}

/** Workers of one name are one host; `all` is the pace of all, also of those that are not in the table. */
function showHosts({ workers, states_per_s: all }) {
  const hosts = new Map();
  for (const worker of workers.filter((each) => each.leases > 0 && each.states_per_s)) {
    hosts.set(worker.name, (hosts.get(worker.name) ?? 0) + worker.states_per_s);
  }
  const sorted = [...hosts].sort((one, other) => other[1] - one[1]);
  put(by("hosts-text"), all ? "Pace while counting, in states per second, and share of the sum" : "Nobody counts at the moment.");
  const make = () => {
    const item = element("li", [["span", "name"], ["span", "rail"], ["span", "value"]]);
    item.children[1].append(document.createElement("span"));
    return item;
  };
  fill(by("hosts"), sorted.slice(0, HOSTS_SHOWN), make, (item, [name, pace]) => {
    const [label, rail, value] = item.children;
    put(label, name);
    label.title = name;
    rail.firstElementChild.style.width = `${(100 * pace) / sorted[0][1]}%`;
    put(value, `${short(pace)}, ${((100 * pace) / all).toFixed(0)} %`);
  });
}

let announced;

function showEvents(events) {
  const latest = events.slice(-EVENTS_SHOWN).reverse();
  by("no-events").hidden = latest.length > 0;
  fill(by("events"), latest, () => element("li", [["time"], ["span"]]), (item, event) => {
    const [time, text] = item.children;
    put(time, new Date(event.at_ms).toLocaleString([], { dateStyle: "short", timeStyle: "medium", ...CLOCK }));
    time.dateTime = new Date(event.at_ms).toISOString();
    text.className = event.problem ? "problem" : "";
    put(text, event.text);
  });
  const newest = events.at(-1)?.number ?? 0;
  const news = events.filter((event) => event.number > (announced ?? newest) && (event.problem || event.kind === "run_done"));
  if (news.length > 0) put(by("announcer"), news.map((event) => event.text).join(" "));
  announced = newest;
}

function showDisk({ disk, build }) {
  put(by("build"), build);
  const bytes = disk && `${short(disk.free_bytes)}B free, ${short(disk.reserve_bytes)}B reserved`;
  put(by("disk"), disk ? `· disk: ${bytes}` : "");
  by("notice").hidden = !disk?.is_short;
  if (disk?.is_short) put(by("notice"), `The coordinator's disk is nearly full (${bytes}): no more jobs are leased.`);
}

function showHistory({ history }, run) {
  const speeds = history.map((moment) => ({ at: moment.at_ms, value: moment.states_per_s }));
  const fastest = Math.max(...speeds.map((point) => point.value), run.states_per_s ?? 1, 1);
  const now = run.states_per_s ? `now ${short(run.states_per_s)}, ` : "";
  by("throughput-figure").hidden = Boolean(run.finished_at_ms) && speeds.length < 2;
  plot(by("throughput"), speeds, { range: [0, 1.08 * fastest], format: short, unit: "states/s" });
  put(by("throughput-text"), speeds.length > 1
    ? `States per second over the time of day, since ${dayAndTime(speeds[0].at, picture.at_ms)}: ${now}at most ${short(fastest)}`
    : "No measurements yet");

  const estimates = history.filter((moment) => moment.total).map(({ at_ms: at, total }) => ({ at, ...total }));
  const truth = run.total ?? run.published;
  const mark = truth ? Number(truth) : undefined;
  const last = estimates.at(-1);
  by("estimate-figure").hidden = Boolean(run.finished_at_ms) && estimates.length < 2;
  if (estimates.length > 1) plot(by("estimate"), estimates, { range: rangeOf(estimates, mark), mark, format: about, unit: "solutions" });
  else by("estimate").replaceChildren();
  const dashes = truth ? `; dashes: the ${run.total ? "total" : "published count"}` : "";
  put(by("estimate-text"), last
    ? `95 % interval, now ±${((50 * (last.high - last.low)) / last.value).toFixed(2)} %${dashes}`
    : "Too few jobs done to estimate it");
}

const KINDS = { rows: "classes of first rows", border: "border configurations", colours: "row sets" };

function showMap({ map }, run) {
  cellAt = mapOfJobs(by("map"), map.cells);
  const each = map.jobs_per_cell === 1 ? "a job" : `${thousands(map.jobs_per_cell)} jobs`;
  if (!map.cells) return put(by("map-text"), "There is no map before all jobs are planned");
  put(by("map-text"), `Each cell is ${each}: ${KINDS[run.plan] ?? "prefixes"}, in the plan's order`);
}

function showDetail() {
  const run = picture?.runs.find((each) => each.run === detail?.run);
  showRun(run);
  if (!run || detail.run !== run.run) return;
  showHistory(detail, run);
  showMap(detail, run);
}

function showPicture() {
  const run = picture.runs.find((each) => each.run === detail?.run);
  if (picture.runs.length === 0 || run) showRun(run);
  showRuns(picture.runs, run?.run);
  showWorkers(picture);
  showHosts(picture);
  showEvents(picture.events);
  showDisk(picture);
}

by("map").addEventListener("mousemove", (event) => {
  const run = picture?.runs.find((each) => each.run === detail?.run);
  const index = cellAt(event.offsetX, event.offsetY);
  if (!run || index === undefined || index >= detail.map.cells.length) return;
  const first = index * detail.map.jobs_per_cell;
  const last = Math.min(first + detail.map.jobs_per_cell, run.jobs) - 1;
  by("map").title = first === last ? `job ${first}` : `jobs ${first} to ${last}`;
});
for (const change of [matchMedia("(prefers-color-scheme: dark)"), window]) {
  change.addEventListener(change === window ? "resize" : "change", () => detail && showDetail());
}

/** Time without a word from the coordinator after which what is shown is out of date: it sends a picture every second. */
const SILENCE_MS = 10_000;

let heardAt = 0;

function isLive() {
  heardAt = performance.now();
  // All at once: nothing moves when the run's own part comes.
  by("live").hidden = picture.runs.length > 0 && !detail;
  put(by("link"), "live");
  by("link").className = "link live";
  by("stale").hidden = true;
  document.body.classList.remove("stale");
}

/** Says that the coordinator is away, and makes everything look as old as it is. */
function isAway() {
  put(by("link"), "waiting for the coordinator");
  by("link").className = "link";
  if (!picture) return;
  by("stale").hidden = false;
  const when = dayAndTime(picture.at_ms, Date.now());
  put(by("stale"), `Out of date: the coordinator does not answer. Everything here is as of ${when}.`);
  document.body.classList.add("stale");
  if (!document.title.startsWith("Out of date")) document.title = `Out of date - ${document.title}`;
}

setInterval(() => heardAt && performance.now() - heardAt > SILENCE_MS && isAway(), 1000);

function listen() {
  const run = new URLSearchParams(location.search).get("run");
  const stream = new EventSource(run ? `/live?run=${encodeURIComponent(run)}` : "/live");
  stream.addEventListener("picture", (event) => {
    picture = JSON.parse(event.data);
    isLive();
    showPicture();
  });
  stream.addEventListener("detail", (event) => {
    detail = JSON.parse(event.data);
    by("live").hidden = false;
    showDetail();
  });
  stream.addEventListener("error", async () => {
    isAway();
    if (stream.readyState !== EventSource.CLOSED) return;
    // It was refused: the session is over, or there is no such run, or too many pages are open.
    const answer = await fetch(run ? `/live?run=${encodeURIComponent(run)}` : "/live").catch(() => undefined);
    if (answer?.status === 401) location.assign("/login");
    else if (answer?.status === 404) location.assign("/");
    else setTimeout(listen, 5000);
    answer?.body?.cancel();
  });
}

/** A table of a report; numbers stand on the right. */
function reportTable({ heading, texts, columns, rows }) {
  const part = element("section", [["div", "scroll"]]);
  const scroll = part.firstElementChild;
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", heading);
  const table = element("table", [["caption"]]);
  table.caption.textContent = heading;
  scroll.append(table);
  if (columns.some(Boolean)) {
    const head = table.createTHead().insertRow();
    columns.forEach((name, index) => {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.className = index < texts ? "" : "number";
      cell.textContent = name;
      head.append(cell);
    });
  }
  const body = table.createTBody();
  rows.forEach((row) => {
    const line = body.insertRow();
    row.forEach((text, index) => {
      const cell = document.createElement(index ? "td" : "th");
      if (!index) cell.scope = "row";
      cell.className = index < texts ? "" : "number";
      cell.dataset.label = columns[index];
      cell.textContent = text;
      line.append(cell);
    });
  });
  return part;
}

/** What a saved page tells beside its run. */
function showReport({ title, reputation, in_doubt: inDoubt, tables, commands, written }) {
  const parts = [["h1", title], ["p", reputation, inDoubt ? "notice" : ""], ["h2", "How to verify it"],
    ...commands.flatMap(([command, does]) => [["pre", command], ["p", does, "muted"]])];
  const section = element("section", parts.map(([kind, , style]) => [kind, style]));
  parts.forEach(([, text], index) => { section.children[index].textContent = text; });
  by("report-story").append(section);
  by("report-tables").append(...tables.map(reportTable));
  put(by("build"), written);
}

/** A page of its own has a run inside, as of when it was written. */
function showSaved({ report, ...saved }) {
  ({ picture, detail } = saved);
  for (const id of ["workers-section", "events-section", "hosts-figure"]) by(id).hidden = true;
  by("live").hidden = false;
  showReport(report);
  showDetail();
  document.title = report.title;
}

if (by("data")) {
  showSaved(JSON.parse(by("data").textContent));
} else {
  by("link").hidden = false;
  listen();
}
