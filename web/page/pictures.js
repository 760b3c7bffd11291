// Pictures of numbers. All text goes in as text: names come from other machines.

/** A whole number with separators between thousands; takes decimal strings of any length. */
export const thousands = (digits) => String(digits).replace(/\B(?=(\d{3})+$)/g, ",");

/** A large number, roughly: 2.690 × 10¹². */
export function about(number) {
  if (number < 1e6) return thousands(Math.round(number));
  const [mantissa, exponent] = Number(number).toExponential(3).split("e+");
  const raised = [...exponent].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
  return `${mantissa} × 10${raised}`;
}

/** A number with a letter for its thousands: 8.01 G. */
export function short(number) {
  const letters = ["", " k", " M", " G", " T", " P", " E"];
  let power = 0;
  while (Math.abs(number) >= 1000 && power < letters.length - 1) {
    number /= 1000;
    power += 1;
  }
  return (power ? number.toPrecision(3) : String(Math.round(number))) + letters[power];
}

/** A time span in its two largest units. */
export function span(seconds) {
  const s = Math.round(seconds);
  const [d, h, m] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
  if (d >= 365) return `${Math.floor(d / 365)} y ${d % 365} d`;
  if (d) return `${d} d ${h} h`;
  if (h) return `${h} h ${m} min`;
  if (m) return `${m} min ${s % 60} s`;
  return `${s} s`;
}

const SVG = "http://www.w3.org/2000/svg";

/** An element of a drawing. */
export function draw(parent, name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

/** Round numbers that divide a range. */
function ticks(low, high, wanted) {
  const raw = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= raw);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step / 1e6; at += step) found.push(at);
  return found;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Times of day have 24 hours, whatever the reader's device prefers: logs and reports have them, too. */
export const CLOCK = { hourCycle: "h23" };

/** A time of day, with the day unless it is that of `now`. */
export function dayAndTime(ms, now) {
  const [day, time] = [new Date(ms).toDateString(), { hour: "2-digit", minute: "2-digit", ...CLOCK }];
  if (now !== undefined && Math.abs(ms - now) < 10 * MINUTE) time.second = "2-digit";
  const date = now !== undefined && day === new Date(now).toDateString() ? {} : { day: "numeric", month: "short" };
  if (now !== undefined && Math.abs(ms - now) > 300 * DAY) date.year = "numeric";
  return new Date(ms).toLocaleString([], { ...date, ...time });
}

const STEPS = [SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 20 * SECOND, 30 * SECOND, MINUTE, 2 * MINUTE, 5 * MINUTE,
  10 * MINUTE, 20 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY,
  84 * DAY];

/** Round times of day that divide a range, with what to write there. */
function timeTicks(from, until, wanted) {
  const step = STEPS.find((size) => (until - from) / size <= wanted) ?? STEPS.at(-1);
  const style = step >= DAY ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit", ...CLOCK };
  if (step < MINUTE) style.second = "2-digit";
  if (step < DAY && until - from > 20 * HOUR) style.weekday = "short";
  const zone = -new Date(from).getTimezoneOffset() * MINUTE;
  const found = [];
  for (let at = Math.ceil((from + zone) / step) * step - zone; at <= until; at += step) {
    found.push({ at, text: new Date(at).toLocaleString([], style) });
  }
  return found;
}

/** The stretches of points between which nobody measured for long: no line leads over these gaps. */
function stretches(points) {
  const gaps = points.slice(1).map((point, index) => point.at - points[index].at);
  const usual = [...gaps].sort((a, b) => a - b)[Math.floor(gaps.length / 2)];
  const found = [[points[0]]];
  points.slice(1).forEach((point, index) => {
    if (gaps[index] > 8 * usual && gaps[index] > 15 * SECOND) found.push([]);
    found.at(-1).push(point);
  });
  return found;
}

/**
 * Values over time: `points` are {at, value, low, high} with low and high for a band or without them; `mark` is a
 * level to compare with; `format` writes the numbers at the axis, and `unit` stands over them.
 */
export function plot(svg, points, { range, mark, format, unit }) {
  svg.replaceChildren();
  const [width, height] = [svg.clientWidth, svg.clientHeight];
  if (points.length < 2 || !width) return;
  const [left, right, top, bottom] = [78, 6, 24, 24];
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const [from, until] = [points[0].at, points.at(-1).at];
  const [low, high] = range;
  const x = (at) => left + ((at - from) / (until - from || 1)) * (width - left - right);
  const inside = (value) => Math.min(Math.max(value, low), high);
  const y = (value) => height - bottom - ((inside(value) - low) / (high - low || 1)) * (height - top - bottom);
  const path = (list, of) => list.map((point) => `${x(point.at).toFixed(1)},${y(of(point)).toFixed(1)}`);

  for (const level of ticks(low, high, 4)) {
    draw(svg, "line", { class: "grid", x1: left, x2: width - right, y1: y(level), y2: y(level) });
    draw(svg, "text", { class: "axis", x: left - 8, y: y(level) + 4, "text-anchor": "end" }, format(level));
  }
  draw(svg, "text", { class: "axis", x: left - 8, y: 12, "text-anchor": "end" }, unit);
  const room = width - left - right;
  for (const { at, text } of timeTicks(from, until, room / 110)) {
    draw(svg, "line", { class: "grid", x1: x(at), x2: x(at), y1: height - bottom, y2: height - bottom + 5 });
    const anchor = x(at) - left < 30 ? "start" : x(at) > width - right - 30 ? "end" : "middle";
    draw(svg, "text", { class: "axis", x: x(at), y: height - 4, "text-anchor": anchor }, text);
  }
  for (const stretch of stretches(points)) {
    const [first, last] = [stretch[0], stretch.at(-1)];
    if (first.low === undefined) {
      const line = path(stretch, (point) => point.value);
      const area = [`${x(first.at)},${y(low)}`, ...line, `${x(last.at)},${y(low)}`];
      draw(svg, "polygon", { class: "area", points: area.join(" ") });
    } else {
      const lower = path(stretch, (point) => point.low).reverse();
      draw(svg, "polygon", { class: "band", points: [...path(stretch, (point) => point.high), ...lower].join(" ") });
    }
    draw(svg, "polyline", { class: "curve", points: path(stretch, (point) => point.value).join(" ") });
  }
  if (mark !== undefined && mark >= low && mark <= high) {
    draw(svg, "line", { class: "mark", x1: left, x2: width - right, y1: y(mark), y2: y(mark) });
  }
}

/** A small curve of values, the latest at the right, from 0 to the largest. */
export function curve(svg, values) {
  const largest = Math.max(...values, 1);
  const step = 100 / Math.max(values.length - 1, 1);
  const points = values.map((value, index) => `${(step * index).toFixed(1)},${(19 - (18 * value) / largest).toFixed(1)}`);
  if (!svg.firstChild) draw(svg, "polyline", { class: "curve", "vector-effect": "non-scaling-stroke" });
  svg.firstChild.setAttribute("points", points.join(" "));
}

/** The range that holds all but the wildest of the intervals, and the level to compare with. */
export function rangeOf(points, mark) {
  const at = (values, share) => values.sort((a, b) => a - b)[Math.round(share * (values.length - 1))];
  let low = at(points.map((point) => point.low), 0.15);
  let high = at(points.map((point) => point.high), 0.85);
  if (mark !== undefined) [low, high] = [Math.min(low, mark), Math.max(high, mark)];
  const margin = 0.08 * (high - low) || 1;
  return [Math.max(low - margin, 0), high + margin];
}

/** A run's jobs as cells, by the letters that `web/src/picture.rs` explains. Returns the cell at a place on it. */
export function mapOfJobs(canvas, cells) {
  const width = canvas.clientWidth;
  if (!width || !cells) {
    canvas.width = 0;
    return () => undefined;
  }
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const [line, accent, busy, bad] = ["--line", "--accent", "--busy", "--bad"].map(colour);
  const size = Math.min(Math.max(Math.floor(Math.sqrt((width * 170) / cells.length)), 5), 20);
  const columns = Math.max(Math.floor(width / size), 1);
  const height = Math.ceil(cells.length / columns) * size;
  const scale = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = [width * scale, height * scale];
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  [...cells].forEach((cell, index) => {
    const [x, y] = [(index % columns) * size, Math.floor(index / columns) * size];
    const square = (fill, opacity) => {
      pen.globalAlpha = opacity;
      pen.fillStyle = fill;
      pen.fillRect(x, y, size - 1, size - 1);
    };
    square(line, 1);
    const done = cell >= "a" ? cell.charCodeAt(0) - 97 : Number(cell);
    if (cell === "q") square(bad, 1);
    else if (cell >= "a") square(busy, 1);
    else if (done) square(accent, 0.25 * done);
  });
  return (x, y) => Math.floor(y / size) * columns + Math.floor(x / size);
}

/** A board with its queens, one a row. */
export function board(svg, columns) {
  const n = columns.length;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${10 * n} ${10 * n}`);
  for (let row = 0; row < n; row += 1) {
    for (let column = (row + 1) % 2; column < n; column += 2) {
      draw(svg, "rect", { class: "square", x: 10 * column, y: 10 * row, width: 10, height: 10 });
    }
  }
  columns.forEach((column, row) => {
    const d = "M2 7.4 1.4 3.2 3.5 5 5 2 6.5 5 8.6 3.2 8 7.4ZM2 8h6v.9H2Z";
    draw(svg, "path", { class: "queen", d, transform: `translate(${10 * column} ${10 * row})` });
  });
}
