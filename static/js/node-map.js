// Draws memory nodes and their relations. For eyes and pointers only: the page says the same in lists, for everybody.

const SVG = "http://www.w3.org/2000/svg";
const STEPS = 300;
const MOST_TYPES = { wide: 14, narrow: 7 }; // above it relations are told only while pointed at

const make = (name, attributes = {}, text = "") => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text) element.textContent = text;
  return element;
};
const short = (text, most) => ([...text].length > most ? `${[...text].slice(0, most - 1).join("")}…` : text);

// One line for each pair, with all their relations' names and an arrow at each end that one points to.
function linesOf({ nodes, relations }) {
  const place = new Map(nodes.map((node, at) => [node.id, at]));
  const lines = new Map();
  for (const [source, type, target] of relations) {
    const [from, to] = [place.get(source), place.get(target)];
    if (from === undefined || to === undefined) continue;
    const [low, high] = [Math.min(from, to), Math.max(from, to)];
    const line = lines.get(`${low} ${high}`) ?? { low, high, types: [], toLow: false, toHigh: false };
    if (!line.types.includes(type)) line.types.push(type);
    if (to === low) line.toLow = true;
    else line.toHigh = true;
    lines.set(`${low} ${high}`, line);
  }
  return [...lines.values()];
}

// Fruchterman and Reingold, 1991: nodes push each other away, lines pull, and all of it cools down. It begins from a
// spiral and no chance is in it, so that the same graph is drawn the same way each time. In a square from 0 to 1.
function layOut(count, lines, center) {
  const at = Array.from({ length: count }, (_, index) => {
    const turn = index * 2.399963;
    const radius = 0.45 * Math.sqrt((index + 0.5) / count);
    return index === center ? { x: 0.5, y: 0.5 } : { x: 0.5 + radius * Math.cos(turn), y: 0.5 + radius * Math.sin(turn) };
  });
  const ideal = 0.75 / Math.sqrt(count);
  for (let step = 0; step < STEPS; step += 1) {
    const push = at.map((point) => ({ x: (0.5 - point.x) * ideal * 0.6, y: (0.5 - point.y) * ideal * 0.6 }));
    for (let one = 0; one < count; one += 1) {
      for (let other = one + 1; other < count; other += 1) {
        const dx = at[one].x - at[other].x;
        const dy = at[one].y - at[other].y;
        const square = Math.max(dx * dx + dy * dy, 1e-6);
        const force = (ideal * ideal) / square;
        push[one].x += dx * force;
        push[one].y += dy * force;
        push[other].x -= dx * force;
        push[other].y -= dy * force;
      }
    }
    for (const { low, high } of lines) {
      const dx = at[low].x - at[high].x;
      const dy = at[low].y - at[high].y;
      const force = Math.hypot(dx, dy) / ideal;
      push[low].x -= dx * force;
      push[low].y -= dy * force;
      push[high].x += dx * force;
      push[high].y += dy * force;
    }
    const heat = 0.1 * (1 - step / STEPS) ** 2;
    at.forEach((point, index) => {
      if (index === center) return;
      const length = Math.hypot(push[index].x, push[index].y) || 1;
      point.x += (push[index].x / length) * Math.min(length, heat);
      point.y += (push[index].y / length) * Math.min(length, heat);
    });
  }
  return at;
}

// Stretched to fill the canvas, with room for the names at its edges.
function fit(points, width, height) {
  const across = Math.min(70, width / 6);
  const bounds = (axis) => {
    const values = points.map((point) => point[axis]);
    return [Math.min(...values), Math.max(...values)];
  };
  const [[left, right], [top, bottom]] = [bounds("x"), bounds("y")];
  const scale = (value, low, high, start, end) =>
    high - low < 1e-6 ? (start + end) / 2 : start + ((value - low) / (high - low)) * (end - start);
  return points.map(({ x, y }) => ({
    x: scale(x, left, right, across, width - across),
    y: scale(y, top, bottom, 32, height - 44),
  }));
}

const put = (label, [x, y]) => {
  label.setAttribute("x", x);
  label.setAttribute("y", y);
};
const apart = (one, other) =>
  one.x + one.width <= other.x ||
  other.x + other.width <= one.x ||
  one.y + one.height <= other.y ||
  other.y + other.height <= one.y;

// Each label takes the first of its places where it covers neither a dot nor a label that came before it; one that finds
// none is told only while pointed at. Drawn first: only then has a text a size.
function giveRoom(labels, dots, width) {
  const taken = dots.map((dot) => dot.getBBox());
  for (const { label, placesFor } of labels) {
    const places = placesFor(label.getComputedTextLength() / 2);
    const isFree = places.some((place) => {
      put(label, place);
      const box = label.getBBox();
      const fits = box.x >= 0 && box.x + box.width <= width && taken.every((other) => apart(box, other));
      if (fits) taken.push(box);
      return fits;
    });
    if (!isFree) put(label, places[0]);
    label.classList.toggle("map__label--quiet", !isFree);
  }
}

function arrow(tip, from) {
  const angle = Math.atan2(tip.y - from.y, tip.x - from.x);
  const corner = (turn) => `${tip.x - 8 * Math.cos(angle + turn)},${tip.y - 8 * Math.sin(angle + turn)}`;
  return make("polygon", { class: "map__arrow", points: `${tip.x},${tip.y} ${corner(0.42)} ${corner(-0.42)}` });
}

function draw(figure) {
  const canvas = figure.querySelector(".map__canvas");
  const graph = JSON.parse(figure.dataset.map);
  const lines = linesOf(graph);
  const center = graph.nodes.findIndex((node) => node.id === figure.dataset.center);
  const points = layOut(graph.nodes.length, lines, center);
  const degree = graph.nodes.map((_, index) => lines.filter(({ low, high }) => low === index || high === index).length);
  const byDegree = graph.nodes
    .map((_, index) => index)
    .sort((one, other) => (other === center) - (one === center) || degree[other] - degree[one]);
  const radius = (node) => 7 + Math.min(9, 2 * Math.sqrt(node.memories));

  function redraw(width) {
    const narrow = width < 560;
    const few = graph.nodes.length < 8;
    const height = narrow ? (few ? 260 : 400) : few ? 280 : 460;
    const showsTypes = lines.length <= (narrow ? MOST_TYPES.narrow : MOST_TYPES.wide);
    const at = fit(points, width, height);
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, height });
    const parts = []; // [element, the nodes it belongs to]

    const typeLabels = [];
    for (const { low, high, types, toLow, toHigh } of lines) {
      const group = make("g");
      const [a, b] = [at[low], at[high]];
      const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
      const along = (from, to, distance) => ({
        x: from.x + ((to.x - from.x) * distance) / length,
        y: from.y + ((to.y - from.y) * distance) / length,
      });
      const start = along(a, b, radius(graph.nodes[low]) + 3);
      const end = along(b, a, radius(graph.nodes[high]) + 3);
      group.append(make("line", { class: "map__line", x1: start.x, y1: start.y, x2: end.x, y2: end.y }));
      if (toHigh) group.append(arrow(end, start));
      if (toLow) group.append(arrow(start, end));
      svg.append(group);
      parts.push([group, [low, high]]);
      const label = make("text", { class: "map__type map__label--quiet" }, short(types.join(", "), narrow ? 16 : 26));
      const places = [0.5, 0.38, 0.62].map((part) => [a.x + (b.x - a.x) * part, a.y + (b.y - a.y) * part + 4]);
      put(label, places[0]);
      typeLabels.push({ label, placesFor: () => places });
      parts.push([label, [low, high]]);
    }
    svg.append(...typeLabels.map(({ label }) => label));

    const nameLabels = graph.nodes.map((node, index) => {
      // No tab stop: who goes by keyboard has the list.
      const link = make("a", { href: node.url, tabindex: -1, class: "map__node" });
      if (index === center) link.classList.add("map__node--center");
      const title = node.kind ? `${node.name} (${node.kind})` : node.name;
      const { x, y } = at[index];
      const label = make("text", { class: "map__name" }, short(node.name, narrow ? 14 : 20));
      const dot = make("circle", { class: "map__dot", cx: x, cy: y, r: radius(node) });
      link.append(make("title", {}, title), dot, label);
      link.addEventListener("pointerenter", () => point(svg, parts, lines, index));
      link.addEventListener("pointerleave", () => point(svg, parts, lines, null));
      svg.append(link);
      parts.push([link, [index]]);
      const [below, above] = [y + radius(node) + 15, y - radius(node) - 6];
      const beside = radius(node) + 6;
      const placesFor = (half) => [[x, below], [x, above], [x + beside + half, y + 4], [x - beside - half, y + 4]];
      return { label, placesFor };
    });
    canvas.replaceChildren(svg);
    const labels = [...byDegree.map((index) => nameLabels[index]), ...(showsTypes ? typeLabels : [])];
    giveRoom(labels, [...svg.querySelectorAll(".map__dot")], width);
  }

  let drawn = 0;
  new ResizeObserver(() => {
    const width = Math.round(figure.clientWidth) - 2;
    if (width > 0 && width !== drawn) redraw((drawn = width));
  }).observe(figure);
}

// What is pointed at and what it is related to stand out; the rest steps back.
function point(svg, parts, lines, index) {
  const near = new Set([index]);
  for (const { low, high } of lines) {
    if (low === index) near.add(high);
    if (high === index) near.add(low);
  }
  svg.classList.toggle("map--pointed", index !== null);
  for (const [element, of] of parts) {
    const isNear = of.length === 1 ? near.has(of[0]) : of.includes(index);
    element.classList.toggle("map__near", isNear);
    element.classList.toggle("map__far", index !== null && !isNear);
  }
}

document.querySelectorAll("[data-map]").forEach(draw);
