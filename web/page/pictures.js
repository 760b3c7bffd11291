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
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step / 1e6; at += step) found.push(at);
  return found;
}

const clock = (ms, withDay) => new Date(ms).toLocaleString([], withDay
  ? { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" }
  : { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/**
 * Values over time: `points` are {at, value, low, high} with low and high for a band or without them; `mark` is a
 * level to compare with; `format` writes the numbers at the axis.
 */
export function plot(svg, points, { range, mark, format }) {
  svg.replaceChildren();
  const [width, height] = [svg.clientWidth, svg.clientHeight];
  if (points.length < 2 || !width) return;
  const [left, right, top, bottom] = [78, 6, 8, 24];
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
  const withDay = until - from > 86_400_000;
  draw(svg, "text", { class: "axis", x: left, y: height - 6 }, clock(from, withDay));
  draw(svg, "text", { class: "axis", x: width - right, y: height - 6, "text-anchor": "end" }, clock(until, withDay));
  if (points[0].low === undefined) {
    const line = path(points, (point) => point.value);
    const area = [`${x(from)},${y(low)}`, ...line, `${x(until)},${y(low)}`];
    draw(svg, "polygon", { class: "area", points: area.join(" ") });
  } else {
    const lower = path(points, (point) => point.low).reverse();
    draw(svg, "polygon", { class: "band", points: [...path(points, (point) => point.high), ...lower].join(" ") });
  }
  draw(svg, "polyline", { class: "curve", points: path(points, (point) => point.value).join(" ") });
  if (mark !== undefined && mark >= low && mark <= high) {
    draw(svg, "line", { class: "mark", x1: left, x2: width - right, y1: y(mark), y2: y(mark) });
  }
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
