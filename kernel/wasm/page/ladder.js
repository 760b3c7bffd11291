// Steps through the ladder's searches, and counts boards with them. The searches are the kernel's own, as WebAssembly.
"use strict";

const by = (id) => document.getElementById(id);
const thousands = (digits) => String(digits).replace(/\B(?=(\d{3})+$)/g, ",");
const several = (count, what) => `${thousands(count)} ${what}${Number(count) === 1 ? "" : "s"}`;

// In the kernel's order.
const RUNGS = [
  ["brute-force", "Brute force", "Put one queen in each row, in all ways, and look at each full board. Obviously correct, "
    + "and very slow: most boards are spoiled by their first queens, and all the others are tried below them."],
  ["backtracking", "Backtracking", "Two queens that attack each other do so whatever comes below. So compare each queen with "
    + "those above before the next row, and take the last one back when a row has no free cell."],
  ["flags", "Flags", "Do not compare queens; mark what they attack. One list is for the columns, one for the diagonals with "
    + "constant row + column, one for those with constant row - column. The search is the same, each state is cheaper."],
  ["bitmap", "Bitmap", "Seen from one row, the three lists are three words of N bits. For the next row the diagonal words move "
    + "by one bit. All free cells of the row are found at once, and nothing has to be undone."],
  ["mirror", "Mirror", "The mirror image of a solution is a solution. Keep the first queen in the left half, and count each "
    + "solution twice. Where she is in the middle column, the second queen is in the left half."],
  ["symmetry", "Symmetry", "A solution has up to 8 images, by turns and reflections. Search only for the smallest: its first "
    + "queen is as near to a corner as any queen on the border. At the end, compare some boards with their turns."],
];
const [BRUTE_FORCE, BACKTRACKING, FLAGS, BITMAP] = [0, 1, 2, 3];
const SIZES = { steps: [4, 8], whole: [4, 12], bruteForce: 8 };
const SPEEDS = [1, 3, 10, 30, 1_000, 30_000, 1_000_000];

const state = { rung: BRUTE_FORCE, n: 6, queens: [], allowed: [], taken: 0, isPlaying: false, isOver: false };
let search, counter;

/** All that is counted at once, with its time. */
function countWhole(rung, n) {
  const begun = performance.now();
  let [times, seconds] = [0, 0];
  // Browsers have coarse clocks.
  for (; seconds < 0.02; times += 1) {
    counter.count(rung, n);
    seconds = (performance.now() - begun) / 1000;
  }
  seconds /= times;
  return { states: counter.states(), total: counter.total(), unique: counter.unique(), seconds };
}

/** The two rows whose queens attack each other, the first such pair. */
function attackers(queens) {
  for (let below = 1; below < queens.length; below += 1) {
    for (let above = 0; above < below; above += 1) {
      const shift = Math.abs(queens[below] - queens[above]);
      if (shift === 0 || shift === below - above) return [above, below];
    }
  }
  return undefined;
}

/** Puts the next queen down; says nothing. Whether there was one. */
function advance() {
  state.isOver = search.step() === 0;
  if (state.isOver) return false;
  const row = search.row();
  state.taken = state.queens.length - row;
  state.queens.length = state.allowed.length = row;
  state.queens.push(search.column());
  state.allowed.push(search.allowed());
  return true;
}

/** What the last step did, in words. */
function story() {
  const { queens, n, rung } = state;
  const row = queens.length - 1;
  if (state.isOver) return `The search is over: ${several(search.total(), "solution")}, ${several(search.states(), "state")}.`;
  if (row < 0) return `An empty board, N = ${n}.`;
  const column = queens[row];
  const put = state.taken ? `Row ${row}: the queen moves to column ${column}.` : `Row ${row}: a queen on column ${column}.`;
  const back = state.taken > 1 ? `${several(state.taken - 1, "queen")} below taken back. ` : "";
  return back + put + verdict(row + 1 === n, search.members(), rung);
}

function verdict(isFull, members, rung) {
  if (!isFull) return "";
  if (members > 2 || (members === 2 && RUNGS[rung][0] === "symmetry")) return ` A solution, counted for its ${members} images.`;
  if (members === 2) return " A solution, counted for itself and its mirror image.";
  if (members === 1) return " A solution.";
  const pair = attackers(state.queens);
  if (pair) return ` The board is full, but the queens of rows ${pair[0]} and ${pair[1]} attack each other.`;
  return " A solution, but one of its turns is smaller: not counted.";
}

/** The columns that queens above a row attack in it, one word for each direction. */
function attacks(queens, row) {
  const words = { columns: 0, rising: 0, falling: 0 };
  for (let above = 0; above < row; above += 1) {
    const [bit, distance] = [1 << queens[above], row - above];
    words.columns |= bit;
    words.rising |= bit << distance;
    words.falling |= bit >> distance;
  }
  const full = (1 << state.n) - 1;
  words.rising &= full;
  return { ...words, free: state.allowed[row] & full & ~(words.columns | words.rising | words.falling) };
}

const bits = (word, length) => Array.from({ length }, (_, at) => (word >> at) & 1).join(" ");

/** What the algorithm looks at for the last queen: a title, and lines of a name and a text. */
function view() {
  const { rung, n, queens } = state;
  const row = queens.length - 1;
  if (row < 0) return ["What it looks at", [["nothing", "no queen stands yet"]]];
  const title = `What it looks at in row ${row}`;
  const above = queens.slice(0, row);
  const { columns, rising, falling, free } = attacks(queens, row);
  if (rung === BRUTE_FORCE) {
    return ["What it looks at", [row + 1 === n ? ["all pairs of queens", "the board is full"] : ["nothing", "the board is not full"]]];
  }
  if (rung === BACKTRACKING) {
    const lines = above.map((column, at) => {
      const distance = row - at;
      return [`attacked by row ${at}`, bits(1 << column | 1 << (column + distance) | (1 << column) >> distance, n)];
    });
    return [title, [...lines, ["free", bits(free, n)]]];
  }
  if (rung === FLAGS) {
    const set = (lines) => lines.reduce((word, line) => word | 1 << line, 0);
    return [title, [
      ["columns taken", bits(set(above), n)],
      ["row + column taken", bits(set(above.map((column, at) => at + column)), 2 * n - 1)],
      ["row - column taken", bits(set(above.map((column, at) => at - column + n - 1)), 2 * n - 1)],
    ]];
  }
  const words = [["columns", bits(columns, n)], ["rising", bits(rising, n)], ["falling", bits(falling, n)]];
  const leftOut = rung === BITMAP ? [] : [["left out", bits(~state.allowed[row], n)]];
  return [title, [...words, ...leftOut, ["free", bits(free, n)]]];
}

function draw(parent, name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent.append(element);
}

function drawBoard(svg) {
  const { n, queens, allowed, rung } = state;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${10 * n} ${10 * n}`);
  const last = queens.length - 1;
  const { free } = last >= 0 ? attacks(queens, last) : { free: 0 };
  for (let row = 0; row < n; row += 1) {
    for (let column = 0; column < n; column += 1) {
      const [x, y] = [10 * column, 10 * row];
      if ((row + column) % 2) draw(svg, "rect", { class: "square", x, y, width: 10, height: 10 });
      if (row <= last && !(allowed[row] >> column & 1)) {
        draw(svg, "path", { class: "left-out", d: `M${x} ${y + 5}l5 -5M${x} ${y + 10}l10 -10M${x + 5} ${y + 10}l5 -5` });
      } else if (row === last && column !== queens[row] && rung !== BRUTE_FORCE) {
        const isFree = free >> column & 1;
        if (isFree) draw(svg, "circle", { class: "free", cx: x + 5, cy: y + 5, r: 1.6 });
        else draw(svg, "path", { class: "attacked", d: `M${x + 3.5} ${y + 3.5}l3 3m0 -3l-3 3` });
      }
    }
  }
  queens.forEach((column, row) => {
    const d = "M2 7.4 1.4 3.2 3.5 5 5 2 6.5 5 8.6 3.2 8 7.4ZM2 8h6v.9H2Z";
    const kind = row === last ? "queen last" : "queen";
    draw(svg, "path", { class: kind, d, transform: `translate(${10 * column} ${10 * row})` });
  });
}

/** Shows where the search stands. */
function show() {
  by("what").textContent = story();
  const columns = state.queens.join(", ");
  by("queens").textContent = columns && `Queens from the top row down in columns ${columns}.`;
  for (const name of ["states", "total", "unique"]) by(name).textContent = thousands(search[name]());
  const [title, lines] = view();
  by("view-title").textContent = title;
  by("view").replaceChildren(...lines.map(([name, text]) => rowOf(name, [text], ["bits"])));
  drawBoard(by("board"));
  by("play").textContent = state.isPlaying ? "Pause" : "Play";
  for (const id of ["play", "step", "next"]) by(id).setAttribute("aria-disabled", state.isOver);
}

/** The same, and says it to those who do not see it. */
function tell() {
  show();
  by("said").textContent = `${by("what").textContent} ${by("queens").textContent}`;
}

function pause() {
  state.isPlaying = false;
  cancelAnimationFrame(state.frame);
}

/** A row of a table: a heading, then cells, each of a class. */
function rowOf(heading, cells, classes) {
  const row = document.createElement("tr");
  const head = row.appendChild(document.createElement("th"));
  head.scope = "row";
  head.textContent = heading;
  cells.forEach((text, at) => {
    const cell = row.appendChild(document.createElement("td"));
    cell.className = classes[at];
    cell.textContent = text;
  });
  return row;
}

const totals = new Map();

function restart() {
  pause();
  const { rung, n } = state;
  search.begin(rung, n);
  Object.assign(state, { queens: [], allowed: [], taken: 0, isOver: false });
  const key = `${n}/${RUNGS[rung][0]}`;
  if (!totals.has(key)) totals.set(key, countWhole(rung, n));
  for (const name of ["states", "total", "unique"]) by(`${name}-of`).textContent = `of ${thousands(totals.get(key)[name])}`;
  by("idea").textContent = RUNGS[rung][2];
  history.replaceState(null, "", `#${key}`);
  tell();
}

function stepOnce() {
  pause();
  if (!state.isOver) advance();
  tell();
}

function nextSolution() {
  pause();
  while (advance() && !search.members());
  tell();
}

/** Plays with the speed chosen: as many steps for each picture as are due. */
function play() {
  state.isPlaying = true;
  // Less to see for those who want no motion; the search is as fast.
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches ? 1000 : 0;
  let [seen, drawn, due] = [performance.now(), 0, 1];
  const frame = (now) => {
    due += Math.max(now - seen, 0) / 1000 * SPEEDS[by("speed").value];
    seen = now;
    const until = performance.now() + 12;
    for (let made = 1; due >= 1; made += 1, due -= 1) {
      if (!advance()) return void (pause(), tell());
      // A slow browser does not catch up.
      if (made % 256 === 0 && performance.now() > until) due = 1;
    }
    if (now - drawn >= calm) {
      drawn = now;
      show();
    }
    state.frame = requestAnimationFrame(frame);
  };
  state.frame = requestAnimationFrame(frame);
  show();
}

function togglePlay() {
  if (state.isPlaying) pause();
  else if (!state.isOver) return play();
  return tell();
}

function duration(seconds) {
  const [size, unit] = [[1, "s"], [1e-3, "ms"], [0, "µs"]].find(([least]) => seconds >= least);
  return `${Number((seconds / (size || 1e-6)).toPrecision(2))} ${unit}`;
}

/** N + N² + ... + N^N. */
function bruteForceStates(n) {
  return Array.from({ length: n }, (_, at) => BigInt(n) ** BigInt(at + 1)).reduce((sum, states) => sum + states);
}

function ratio(before, now) {
  if (before === undefined) return "";
  const times = Number(before) / Number(now);
  return times < 100 ? times.toFixed(1) : thousands(Math.round(times));
}

let comparison = 0;

async function compare(n) {
  comparison += 1;
  const own = comparison;
  by("table-title").textContent = `The rungs for N = ${n}`;
  by("table").replaceChildren();
  by("table-frame").hidden = false;
  let before;
  for (const [rung, [, name]] of RUNGS.entries()) {
    by("counted").textContent = `Counting: ${name}`;
    // Lets the browser show it.
    await new Promise((resolve) => setTimeout(resolve, 20));
    if (own !== comparison) return;
    const isCounted = rung !== BRUTE_FORCE || n <= SIZES.bruteForce;
    const counted = isCounted ? countWhole(rung, n) : { states: bruteForceStates(n) };
    const found = isCounted ? [thousands(counted.total), thousands(counted.unique), duration(counted.seconds)] : ["-", "-", "-"];
    const cells = [thousands(counted.states), ratio(before, counted.states), ...found];
    by("table").append(rowOf(name, cells, ["number", "number", "number minor", "number minor", "number"]));
    before = counted.states;
  }
  by("counted").textContent = `All rungs are counted for N = ${n}.`;
}

function fillChoices() {
  const options = ([first, last]) => Array.from({ length: last - first + 1 }, (_, at) => new Option(first + at, first + at));
  by("n").append(...options(SIZES.steps));
  by("compare-n").append(...options(SIZES.whole));
  by("compare-n").value = 8;
  by("rungs").append(...RUNGS.map(([name, title], rung) => {
    const label = document.createElement("label");
    const input = Object.assign(document.createElement("input"), { type: "radio", name: "rung", value: rung, id: name });
    label.append(input, `${rung + 1}. ${title}`);
    return label;
  }));
  const [n, name] = location.hash.slice(1).split("/");
  const rung = RUNGS.findIndex((each) => each[0] === name);
  if (rung >= 0) state.rung = rung;
  if (n >= SIZES.steps[0] && n <= SIZES.steps[1]) state.n = Math.floor(n);
  by("n").value = state.n;
  by(RUNGS[state.rung][0]).checked = true;
}

function listen() {
  by("choice").addEventListener("change", () => {
    state.rung = Number(document.querySelector("input[name=rung]:checked").value);
    state.n = Number(by("n").value);
    restart();
  });
  const showSpeed = () => {
    const text = several(SPEEDS[by("speed").value], "state");
    by("speed-text").textContent = `${text} a second`;
    by("speed").setAttribute("aria-valuetext", `${text} a second`);
  };
  by("speed").addEventListener("input", showSpeed);
  showSpeed();
  by("play").addEventListener("click", togglePlay);
  by("step").addEventListener("click", stepOnce);
  by("next").addEventListener("click", nextSolution);
  by("restart").addEventListener("click", restart);
  by("compare").addEventListener("submit", (event) => {
    event.preventDefault();
    compare(Number(by("compare-n").value));
  });
  document.addEventListener("keydown", (event) => {
    const isField = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (isField || event.altKey || event.ctrlKey || event.metaKey) return;
    const act = { ArrowRight: stepOnce, End: nextSolution, Home: restart }[event.key];
    if (!act || event.target.closest("[role=region]")) return;
    event.preventDefault();
    act();
  });
}

async function start() {
  const bytes = Uint8Array.from(atob(window.KERNEL), (letter) => letter.charCodeAt(0));
  const kernel = await WebAssembly.compile(bytes);
  // One to step through, one to count beside it.
  const instances = await Promise.all([1, 2].map(() => WebAssembly.instantiate(kernel)));
  [search, counter] = instances.map((instance) => instance.exports);
  fillChoices();
  listen();
  restart();
}

start().catch((error) => {
  by("failed").textContent = `This page needs WebAssembly, which did not start: ${error.message}`;
  by("failed").hidden = false;
});
