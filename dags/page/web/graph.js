// Who reads whom, with states: streams left, each query right of what it reads.
import { h, s } from './dom.js';
import { toQuery, toStream } from './links.js';
import { KINDS } from './states.js';
import { lag } from './times.js';

const [WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN, TALL] = [220, 40, 70, 12, 12, 24];

const depths = nodes => {
  const found = new Map();
  const depth = (key, path) => {
    if (found.has(key)) return found.get(key);
    const node = nodes.get(key);
    if (!node || path.has(key)) return 0;
    path.add(key);
    const below = node.inputs.filter(input => nodes.has(input)).map(input => depth(input, path));
    path.delete(key);
    const own = below.length ? 1 + Math.max(...below) : node.query ? 1 : 0;
    found.set(key, own);
    return own;
  };
  for (const key of nodes.keys()) depth(key, new Set());
  return found;
};

/** Columns of nodes; a layer of many takes several. Nodes stand near what they read. */
const placed = nodes => {
  const layers = [];
  for (const [key, depth] of depths(nodes)) (layers[depth] ??= []).push(key);
  const at = new Map();
  let column = 0;
  for (const layer of layers.filter(Boolean)) {
    const middle = key => {
      const below = nodes.get(key).inputs.map(input => at.get(input)?.y).filter(y => y !== undefined);
      return below.length ? below.reduce((a, b) => a + b) / below.length : 0;
    };
    const order = layer.map((key, i) => [middle(key), i, key]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    order.forEach(([, , key], i) => at.set(key, { x: column + Math.floor(i / TALL), y: i % TALL }));
    column += Math.ceil(order.length / TALL);
  }
  return at;
};

const cut = (text, letters = 27) => (text.length > letters ? `${text.slice(0, letters - 1)}…` : text);

export const graph = (streams, queries, state) => {
  const key = (app, name) => `${app}/${name}`;
  const owner = (app, name) => (state.queries.some(q => q.app === app && q.name === name) || !name.includes('__') ? name : name.slice(0, name.lastIndexOf('__')));
  const shownQueries = new Set(queries.map(one => key(one.app, one.name)));
  const nodes = new Map();
  const needed = new Set(queries.flatMap(one => one.inputs.map(input => key(one.app, owner(one.app, input)))));
  const isShown = one => streams.includes(one) || needed.has(key(one.app, one.name));
  for (const one of state.streams.filter(isShown)) nodes.set(key(one.app, one.name), { one, inputs: [], href: toStream(one.app, one.name) });
  for (const one of state.queries) {
    if (shownQueries.has(key(one.app, one.name)) || needed.has(key(one.app, one.name))) {
      nodes.set(key(one.app, one.name), { one, query: true, inputs: one.inputs.map(input => key(one.app, owner(one.app, input))), href: toQuery(one.app, one.name) });
    }
  }
  if (!nodes.size) return h('p', { class: 'muted' }, 'None of them fits the search and filter.');
  const at = placed(nodes);
  const place = id => [MARGIN + at.get(id).x * (WIDTH + GAP_X), MARGIN + at.get(id).y * (HEIGHT + GAP_Y)];
  const width = 2 * MARGIN + (1 + Math.max(...[...at.values()].map(p => p.x))) * (WIDTH + GAP_X) - GAP_X;
  const height = 2 * MARGIN + (1 + Math.max(...[...at.values()].map(p => p.y))) * (HEIGHT + GAP_Y) - GAP_Y;
  const edges = [], boxes = [];
  for (const [id, node] of nodes) {
    const [x, y] = place(id);
    for (const input of node.inputs.filter(each => nodes.has(each))) {
      const [x0, y0] = place(input);
      const [x1, y1, x2, y2] = [x0 + WIDTH, y0 + HEIGHT / 2, x, y + HEIGHT / 2];
      edges.push(s('path', { class: 'edge', d: `M${x1} ${y1}C${x1 + GAP_X / 2} ${y1} ${x2 - GAP_X / 2} ${y2} ${x2} ${y2}`, data: { from: input, to: id } }));
    }
    const words = node.one.states.map(each => KINDS[each.kind][0]).join(', ');
    boxes.push(s('a', {
      href: node.href, class: `node ${node.one.tone}`,
      onmouseenter: () => mark(id, true), onmouseleave: () => mark(id, false),
    }, s('title', {}, `${id}: ${words}${node.one.states[0].text ? `\n${node.one.states[0].text}` : ''}`),
    s('rect', { x, y, width: WIDTH, height: HEIGHT, rx: node.query ? 6 : 20 }),
    s('text', { x: x + 14, y: y + 17 }, cut(node.one.name)),
    s('text', { x: x + 14, y: y + 32, class: 'small' }, cut(`${KINDS[node.one.states[0].kind][0]} · ${node.one.static ? 'static' : `lag ${lag(node.one.lag)}`}`, 34))));
  }
  function mark(id, on) {
    for (const edge of edges) if (edge.dataset.from === id || edge.dataset.to === id) edge.classList.toggle('on', on);
  }
  return h('section', {}, h('h2', {}, 'Who reads whom'),
    h('p', { class: 'legend' }, ['good', 'work', 'warn', 'bad'].map(tone => h('span', { class: `key ${tone}` }, { good: 'up to date', work: 'at work or behind', warn: 'needs a look', bad: 'in trouble' }[tone])),
      h('span', {}, 'round: streams and relations')),
    h('div', { class: 'scroll picture' }, s('svg', { class: edges.length > 120 ? 'graph dense' : 'graph', width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'graph of streams and queries' }, edges, boxes)));
};
