// Steps through the unique solutions of a small board.
import { board, thousands } from "/pictures.js";

const by = (id) => document.getElementById(id);
const [choice, number, back, next] = ["n", "number", "back", "next"].map(by);
for (let n = 4; n <= 12; n += 1) choice.append(new Option(n, n));

let shown = { n: 8, number: 1, of: 1 };
const symmetries = {
  none: "no symmetry: 8 images",
  "half-turn": "equal to its half turn: 4 images",
  "quarter-turn": "equal to its quarter turn: 2 images",
};

/** Queens row by row, columns from 0 as everywhere, for those who do not see the board. */
const described = (columns) => `Queens from the top row down in columns ${columns.join(", ")}, numbered from 0.`;

async function show(n, wanted) {
  const answer = await fetch(`/solution?n=${n}&number=${wanted}`);
  if (answer.status === 401) return location.assign("/login");
  if (!answer.ok) {
    by("what").textContent = await answer.text();
    return undefined;
  }
  const solution = await answer.json();
  shown = solution;
  [choice.value, number.value, number.max] = [n, wanted, solution.of];
  [back.disabled, next.disabled] = [wanted <= 1, wanted >= solution.of];
  const count = `Solution ${thousands(wanted)} of ${thousands(solution.of)} for N = ${n}`;
  by("what").textContent = `${count}; ${symmetries[solution.symmetry]}`;
  by("queens").textContent = described(solution.images[0].columns);
  board(by("board"), solution.images[0].columns);
  by("images").replaceChildren(...solution.images.map(({ columns, turns }) => {
    const item = document.createElement("li");
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("class", "board");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", described(columns));
    board(svg, columns);
    item.append(svg, turns.join(", "));
    return item;
  }));
  history.replaceState(null, "", `#${n}/${wanted}`);
  return undefined;
}

const step = (to) => {
  const within = Math.min(Math.max(to, 1), shown.of);
  if (within !== shown.number) show(shown.n, within);
};

back.addEventListener("click", () => step(shown.number - 1));
next.addEventListener("click", () => step(shown.number + 1));
choice.addEventListener("change", () => show(Number(choice.value), 1));
number.addEventListener("change", () => step(Number(number.value)));
by("steps").addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
  if (typing || event.altKey || event.ctrlKey || event.metaKey) return;
  const to = { ArrowLeft: shown.number - 1, ArrowRight: shown.number + 1, Home: 1, End: shown.of }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  step(to);
});

const [n, wanted] = location.hash.slice(1).split("/").map(Number);
show(n >= 4 && n <= 12 ? n : 8, wanted >= 1 ? Math.floor(wanted) : 1);
