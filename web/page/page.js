// The runs of a coordinator as they go on, by server-sent events.
import { about, mapOfJobs, plot, rangeOf, short, span, thousands } from "/pictures.js";

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
    if (kind === "th") child.scope = "row";
    made.append(child);
  }
  return made;
}

const percent = (share) => `${(100 * (share < 1 ? Math.min(share, 0.999) : 1)).toFixed(1)} %`;
const bounds = (interval, write) => `${write(interval.low)} to ${write(interval.high)}`;
const numbers = ({ value, low, high }) => ({ value: Number(value), low: Number(low), high: Number(high) });

let picture;
let detail;
let cellAt = () => undefined;

/** Jobs done, or stored while the run is being planned. */
function jobsOf(run) {
  if (run.state === "planning") return `${thousands(run.planned)} of about ${thousands(run.jobs)} planned`;
  return `${thousands(run.done)} of ${thousands(run.jobs)}`;
}

/** How long a finished run was counted, and how long it had waited for its first lease, where that is longer. */
function tookOf(run) {
  if (!run.finished_at_ms) return "";
  const started = run.started_at_ms ?? run.created_at_ms;
  const [waited, took] = [started - run.created_at_ms, run.finished_at_ms - started];
  return `took ${span(took / 1000)}${waited > took ? `, after ${span(waited / 1000)} in the queue` : ""}`;
}

function showRun(run) {
  by("run").hidden = !run;
  by("empty").hidden = Boolean(run);
  if (!run) return;
  const open = run.state === "planning" || run.state === "active" || run.state === "paused";
  put(by("run-title"), run.subject);
  put(by("run-state"), run.stuck ? "needs attention" : run.state);
  by("run-state").className = `state ${run.stuck ? "stuck" : run.state}`;
  put(by("run-name"), `run ${run.id}, plan ${run.plan}`);
  by("bar").value = run.share;
  put(by("share"), percent(run.share));
  document.title = `${percent(run.share)} of ${run.subject} - N-Queens`;

  const estimate = run.estimated_total && numbers(run.estimated_total);
  put(by("total-name"), estimate ? "TOTAL, estimated" : "TOTAL");
  put(by("total"), run.total ? thousands(run.total) : estimate ? about(estimate.value) : "not known yet");
  const totalMore = run.standing ?? run.reason ?? (estimate ? bounds(estimate, about) : "");
  put(by("total-more"), totalMore);

  const left = run.time_left_s;
  put(by("left"), !open ? "none" : left ? span(left.value) : "unknown");
  put(by("left-more"), tookOf(run) || (left ? bounds(left, span) : ""));
  put(by("speed"), run.states_per_s ? `${short(run.states_per_s)} states/s` : "none");
  put(by("speed-more"), run.threads ? `on ${run.threads.toFixed(1)} threads` : "");
  put(by("jobs"), jobsOf(run));
  put(by("jobs-more"), run.quarantined ? `${thousands(run.quarantined)} in quarantine` : "");

  put(by("key-done"), `done ${thousands(run.done)}`);
  put(by("key-leased"), `being counted ${thousands(run.leased)}`);
  put(by("key-ready"), `waiting ${thousands(run.jobs - run.done - run.leased - run.quarantined)}`);
  put(by("key-quarantined"), `in quarantine ${thousands(run.quarantined)}`);
}

function showRuns(runs, chosen) {
  by("runs-section").hidden = runs.length === 0;
  const columns = [["th"], ["td", "number"], ["td", "minor"], ["td", "minor"], ["td", "number"], ["td", "number minor"],
    ["td", "number minor"], ["td", "number"]];
  const make = () => {
    const row = element("tr", columns);
    row.firstElementChild.append(document.createElement("a"));
    return row;
  };
  fill(by("runs"), [...runs].reverse(), make, (row, run) => {
    const link = row.firstElementChild.firstElementChild;
    put(link, run.id);
    link.href = `/?run=${encodeURIComponent(run.id)}`;
    if (run.id === chosen) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
    const total = run.total ? thousands(run.total) : run.estimated_total ? `≈ ${about(run.estimated_total.value)}` : "-";
    const left = run.time_left_s ? span(run.time_left_s.value) : "-";
    [run.n, run.plan, run.state, percent(run.share), jobsOf(run), left, total].forEach((text, index) => {
      put(row.children[index + 1], String(text));
    });
  });
}

function showWorkers({ workers, workers_in_all: all, busy_workers: busy }) {
  const columns = [["th"], ["td", "number minor"], ["td", "minor"], ["td", "number minor"], ["td", "number minor"],
    ["td", "number minor"], ["td", "number"], ["td", "number"]];
  fill(by("workers"), workers, () => element("tr", columns), (row, worker) => {
    const silent = worker.silent_ms / 1000;
    row.className = silent > 60 ? "silent" : "";
    const heard = worker.draining ? "draining" : silent < 10 ? "now" : `${span(silent)} ago`;
    const speed = worker.states_per_s ? short(worker.states_per_s) : "-";
    const texts = [worker.name || `worker ${worker.id}`, worker.id, worker.kernels[0] ?? "-", thousands(worker.threads),
      thousands(worker.leases), thousands(worker.accepted), speed, heard];
    texts.forEach((text, index) => put(row.children[index], String(text)));
    row.children[2].title = worker.device;
  });
  const hidden = all > workers.length ? `; the ${thousands(workers.length)} with the most jobs are shown` : "";
  put(by("workers-more"), all ? `${thousands(all)} seen, ${thousands(busy)} busy${hidden}` : "No worker has registered yet.");
}

/** Workers of one name are one host. */
function showHosts(workers) {
  const hosts = new Map();
  for (const worker of workers.filter((each) => each.leases > 0 && each.states_per_s)) {
    hosts.set(worker.name, (hosts.get(worker.name) ?? 0) + worker.states_per_s);
  }
  const sorted = [...hosts].sort((one, other) => other[1] - one[1]);
  const all = sorted.reduce((sum, [, speed]) => sum + speed, 0);
  put(by("hosts-text"), all ? "Measured speed in states per second, and share of the total" : "Nobody counts at the moment.");
  const make = () => {
    const item = element("li", [["span", "name"], ["span", "rail"], ["span", "value"]]);
    item.children[1].append(document.createElement("span"));
    return item;
  };
  fill(by("hosts"), sorted.slice(0, HOSTS_SHOWN), make, (item, [name, speed]) => {
    const [label, rail, value] = item.children;
    put(label, name);
    label.title = name;
    rail.firstElementChild.style.width = `${(100 * speed) / sorted[0][1]}%`;
    put(value, `${short(speed)}, ${((100 * speed) / all).toFixed(0)} %`);
  });
}

let announced;

function showEvents(events) {
  const latest = events.slice(-EVENTS_SHOWN).reverse();
  by("no-events").hidden = latest.length > 0;
  fill(by("events"), latest, () => element("li", [["time"], ["span"]]), (item, event) => {
    const [time, text] = item.children;
    put(time, new Date(event.at_ms).toLocaleString([], { dateStyle: "short", timeStyle: "medium" }));
    time.dateTime = new Date(event.at_ms).toISOString();
    text.className = event.problem ? "problem" : "";
    put(text, event.text);
  });
  const newest = events.at(-1)?.number ?? 0;
  const news = events.filter((event) => event.number > (announced ?? newest) && (event.problem || event.kind === "run_done"));
  if (news.length > 0) put(by("announcer"), news.map((event) => event.text).join(" "));
  // The numbers begin anew with each life of the coordinator.
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
  const speeds = history.at_ms.map((at, index) => ({ at, value: history.states_per_s[index] }))
    .filter((point) => point.value !== null);
  const fastest = Math.max(...speeds.map((point) => point.value), 1);
  const now = run.states_per_s ? `now ${short(run.states_per_s)}, ` : "";
  plot(by("throughput"), speeds, { range: [0, 1.08 * fastest], format: short });
  put(by("throughput-text"), speeds.length > 1
    ? `States per second since ${new Date(speeds[0].at).toLocaleString()}: ${now}at most ${short(fastest)}`
    : "No measurements since the coordinator started");

  const estimates = history.at_ms.map((at, index) => ({ at, interval: history.total[index] }))
    .filter((point) => point.interval).map(({ at, interval: [low, value, high] }) => ({ at, low, value, high }));
  const truth = run.total ?? run.published;
  const mark = truth ? Number(truth) : undefined;
  const last = estimates.at(-1);
  if (estimates.length > 1) plot(by("estimate"), estimates, { range: rangeOf(estimates, mark), mark, format: about });
  else by("estimate").replaceChildren();
  const dashes = truth ? `; dashes: the ${run.total ? "total" : "published count"}` : "";
  put(by("estimate-text"), last
    ? `95 % interval, now ±${((50 * (last.high - last.low)) / last.value).toFixed(2)} %${dashes}`
    : "Too few jobs done since the coordinator started");
}

const KINDS = { rows: "classes of first rows", border: "border configurations", halves: "column sets", colours: "row sets" };

function showMap({ map }, run) {
  cellAt = mapOfJobs(by("map"), map.cells);
  const each = map.jobs_per_cell === 1 ? "a job" : `${thousands(map.jobs_per_cell)} jobs`;
  if (!map.cells) return put(by("map-text"), "There is no map before all jobs are planned");
  put(by("map-text"), `Each cell is ${each}: ${KINDS[run.plan] ?? "prefixes"}, in the plan's order`);
}

function showDetail() {
  const run = picture?.runs.find((each) => each.id === detail?.run);
  showRun(run);
  if (!run || detail.run !== run.id) return;
  showHistory(detail, run);
  showMap(detail, run);
}

function showPicture() {
  const run = picture.runs.find((each) => each.id === detail?.run);
  if (picture.runs.length === 0 || run) showRun(run);
  showRuns(picture.runs, run?.id);
  showWorkers(picture);
  showHosts(picture.workers);
  showEvents(picture.events);
  showDisk(picture);
}

by("map").addEventListener("mousemove", (event) => {
  const run = picture?.runs.find((each) => each.id === detail?.run);
  const index = cellAt(event.offsetX, event.offsetY);
  if (!run || index === undefined || index >= detail.map.cells.length) return;
  const first = index * detail.map.jobs_per_cell;
  const last = Math.min(first + detail.map.jobs_per_cell, run.jobs) - 1;
  by("map").title = first === last ? `job ${first}` : `jobs ${first} to ${last}`;
});
for (const change of [matchMedia("(prefers-color-scheme: dark)"), window]) {
  change.addEventListener(change === window ? "resize" : "change", () => detail && showDetail());
}

function link(text, live) {
  put(by("link"), text);
  by("link").className = live ? "link live" : "link";
}

function listen() {
  const run = new URLSearchParams(location.search).get("run");
  const stream = new EventSource(run ? `/live?run=${encodeURIComponent(run)}` : "/live");
  stream.addEventListener("picture", (event) => {
    picture = JSON.parse(event.data);
    link("live", true);
    showPicture();
  });
  stream.addEventListener("detail", (event) => {
    detail = JSON.parse(event.data);
    showDetail();
  });
  stream.addEventListener("error", async () => {
    link("waiting for the coordinator", false);
    if (stream.readyState !== EventSource.CLOSED) return;
    // It was refused: the session is over, or there is no such run, or too many pages are open.
    const answer = await fetch(run ? `/live?run=${encodeURIComponent(run)}` : "/live").catch(() => undefined);
    if (answer?.status === 401) location.assign("/login");
    else if (answer?.status === 404) location.assign("/");
    else setTimeout(listen, 5000);
    answer?.body?.cancel();
  });
}

listen();
