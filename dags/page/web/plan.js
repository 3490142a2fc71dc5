// The plan's picture: inputs below, the result on top; edges say how rows come and go.
import { h, s } from './dom.js';
import { encode, get } from './server.js';

const [WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN, LETTERS] = [260, 46, 30, 54, 14, 37];

const lines = text => {
  if (text.length <= LETTERS) return [text];
  let at = text.lastIndexOf(' ', LETTERS);
  if (at < LETTERS / 2) at = LETTERS;
  const rest = text.slice(at).trim();
  return [text.slice(0, at), rest.length <= LETTERS ? rest : `${rest.slice(0, LETTERS - 1)}…`];
};

export const plan = async one => {
  const found = await get(`plan/${encode(one.app)}/${encode(one.name)}`);
  const said = h('p', { class: 'said', 'aria-live': 'polite' }, 'Point at a box or an arrow: here it stands whole.');
  const width = 2 * MARGIN + found.columns * (WIDTH + GAP_X) - GAP_X + 120;
  const height = 2 * MARGIN + found.rows * (HEIGHT + GAP_Y) - GAP_Y;
  const place = new Map(found.nodes.map(node => [node.id, [MARGIN + node.column * (WIDTH + GAP_X), MARGIN + (found.rows - 1 - node.row) * (HEIGHT + GAP_Y)]]));
  const edges = found.edges.map(edge => {
    const [x1, y1] = [place.get(edge.from)[0] + WIDTH / 2, place.get(edge.from)[1]];
    const [x2, y2] = [place.get(edge.to)[0] + WIDTH / 2, place.get(edge.to)[1] + HEIGHT];
    const words = `${edge.text}: ${edge.words}`;
    return s('g', { class: 'flow', tabindex: 0, onmouseenter: () => { said.textContent = words; }, onfocus: () => { said.textContent = words; } }, s('title', {}, words),
      s('path', { d: `M${x1} ${y1}C${x1} ${(y1 + y2) / 2} ${x2} ${(y1 + y2) / 2} ${x2} ${y2}` }),
      s('text', { x: x1 + 6, y: y1 - 8 }, edge.pattern));
  });
  const boxes = found.nodes.map(node => {
    const [x, y] = place.get(node.id);
    const words = node.why ? `${node.text} — by snapshot expansion, because of ${node.why}` : node.text;
    const parts = lines(node.text);
    return s('g', { class: `box ${node.kind}`, tabindex: 0, onmouseenter: () => { said.textContent = words; }, onfocus: () => { said.textContent = words; } }, s('title', {}, words),
      s('rect', { x, y, width: WIDTH, height: HEIGHT, rx: 6 }),
      parts.map((part, i) => s('text', { x: x + WIDTH / 2, y: y + HEIGHT / 2 + 4 + 15 * (i - (parts.length - 1) / 2), 'text-anchor': 'middle' }, part)));
  });
  const patterns = [...new Map(found.edges.map(edge => [edge.pattern, edge])).values()];
  return h('div', {}, said,
    h('p', { class: 'legend' }, h('span', { class: 'key input' }, 'input'), h('span', { class: 'key operator' }, 'operator'), h('span', { class: 'key expansion' }, 'operator by snapshot expansion')),
    h('div', { class: 'scroll picture' }, s('svg', { class: 'plan', viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': `the plan of ${one.name}` }, edges, boxes)),
    h('h2', {}, 'Update patterns'),
    h('dl', { class: 'facts wide' }, patterns.map(edge => h('div', {}, h('dt', {}, edge.pattern), h('dd', {}, edge.words)))));
};
