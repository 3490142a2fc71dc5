// Small charts as SVG; colours come from the style sheet, so they follow the theme.
import { h, number, s } from './dom.js';
import { both, length, local, plain } from './times.js';

export const sparkline = points => {
  const [width, height] = [84, 20];
  const [xs, ys] = [points.map(p => p[0]), points.map(p => p[1])];
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const at = ([x, y]) => `${((x - x0) / (x1 - x0 || 1) * (width - 4) + 2).toFixed(1)} ${(height - 2 - (y - y0) / (y1 - y0 || 1) * (height - 4)).toFixed(1)}`;
  return s('svg', { class: 'spark', width, height, viewBox: `0 0 ${width} ${height}`, role: 'img' },
    s('title', {}, `lag at the last ${points.length} commits, from ${length(points[0][1])} to ${length(points.at(-1)[1])}`),
    s('path', { d: `M${points.map(at).join('L')}` }));
};

const nice = most => {
  const unit = 10 ** Math.floor(Math.log10(most || 1));
  return [1, 2, 2.5, 5, 10].map(n => n * unit).find(n => n >= most) ?? most;
};

/** Bars, one a commit, the oldest left: stacked parts above, plain counts below; a line beneath says what the mouse is at. */
export const commits = (list, { parts, partNames, unit, counts, words }) => {
  const [width, top, low, left] = [860, 150, 60, 56];
  const step = (width - left - 8) / Math.max(list.length, 12);
  const most = nice(Math.max(...list.map(one => parts(one).reduce((a, b) => a + b, 0)), 1e-9));
  const mostCount = nice(Math.max(...list.map(counts), 1));
  const said = h('p', { class: 'said' }, words(list.at(-1)));
  const marks = list.map((one, i) => {
    const x = left + i * step;
    let y = top;
    const bars = parts(one).map((value, k) => {
      const tall = value / most * (top - 10);
      y -= tall;
      return s('rect', { class: `p${k}`, x: x + 1, y, width: Math.max(1, step - 2), height: Math.max(0, tall) });
    });
    const tall = counts(one) / mostCount * low;
    return s('g', { class: 'commit', tabindex: 0, onmouseenter: () => said.replaceChildren(words(one)), onfocus: () => said.replaceChildren(words(one)) },
      s('title', {}, words(one)),
      s('rect', { class: 'hit', x, y: 0, width: step, height: top + low + 24 }), bars,
      s('rect', { class: 'rows', x: x + 1, y: top + 20 + low - tall, width: Math.max(1, step - 2), height: Math.max(0, tall) }));
  });
  const label = (y, text) => s('text', { x: left - 6, y: y + 4, 'text-anchor': 'end' }, text);
  const line = y => s('line', { x1: left, x2: width, y1: y, y2: y });
  return h('figure', {},
    h('figcaption', { class: 'legend' }, partNames.map((name, k) => h('span', { class: `key p${k}` }, name)), h('span', { class: 'key rows' }, 'rows')),
    h('div', { class: 'scroll' }, s('svg', { class: 'chart', viewBox: `0 0 ${width} ${top + low + 28}`, role: 'img', 'aria-label': 'commits, oldest left' },
      line(10), line(top), line(top + 20 + low), label(10, `${most} ${unit}`), label(top, '0'), label(top + 20 + 4, number(mostCount)), label(top + 20 + low, '0'), marks)),
    said);
};

const STEPS = [1, 5, 15, 60, 300, 900, 1800, 3600, 10800, 21600, 43200, 86400, 172800, 604800, 2629800, 7889400, 31557600].map(n => n * 1000);

const axis = (from, to, ticks, left, width, y) => {
  const span = to - from || 1;
  const step = ticks ? nice(span / 6) : STEPS.find(size => span / size <= 7) ?? nice(span / 6);
  const marks = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    const x = left + (at - from) / span * width;
    marks.push(s('line', { x1: x, x2: x, y1: 0, y2: y }), s('text', { x, y: y + 15, 'text-anchor': 'middle' },
      ticks ? number(at) : step >= 86400000 ? local(at, false).slice(0, 10) : local(at, false).slice(5, 16)));
  }
  return marks;
};

const named = (at, ticks) => (ticks ? `tick ${at}` : both(at));
const groups = found => {
  const keys = new Map();
  for (const row of found.rows) (keys.get(row[0]) ?? keys.set(row[0], []).get(row[0])).push(row);
  return [...keys].sort((a, b) => b[1].length - a[1].length || a[0].localeCompare(b[0]));
};
const span = found => {
  const begins = found.rows.map(row => row[1]);
  const ends = found.rows.map(row => row[2] ?? row[1]);
  const from = Math.min(...begins);
  const to = Math.max(...ends, ...(found.rows.some(row => row[2] === null) && found.relation && found.end ? [found.end] : []));
  return [from, to > from ? to : from + 1];
};

/** When each row held, as bars, a lane a key; of a stream, when each row came. */
export const validity = (found, said) => {
  const lanes = groups(found).slice(0, 14);
  const [left, width, tall] = [150, 700, 24];
  const [from, to] = span(found);
  const x = at => left + (at - from) / (to - from) * width;
  const height = lanes.length * tall + 6;
  const marks = lanes.map(([key, rows], lane) => s('g', {},
    s('text', { x: left - 8, y: lane * tall + 16, 'text-anchor': 'end' }, s('title', {}, key || '(all)'), key.length > 20 ? `${key.slice(0, 19)}…` : key || '(all)'),
    rows.map(([, begun, ended, value], i) => {
      const words = `${key || '(all)'}: ${found.measure ? `${found.measure} ${value ?? 'NULL'}, ` : ''}${found.relation ? `from ${named(begun, found.ticks)} to ${ended === null ? 'now' : named(ended, found.ticks)}` : `at ${named(begun, found.ticks)}`}`;
      const end = found.relation ? x(ended ?? Math.max(to, begun)) : x(begun) + 2;
      return s('rect', {
        class: `bar ${found.relation && ended === null ? 'open' : ''} ${i % 2 ? 'odd' : ''}`, x: x(begun), y: lane * tall + 4, width: Math.max(1.5, end - x(begun)), height: tall - 8, rx: 2,
        onmouseenter: () => { said.textContent = words; },
      }, s('title', {}, words));
    })));
  return s('svg', { class: 'chart plot', viewBox: `0 0 ${left + width + 20} ${height + 22}`, role: 'img', 'aria-label': 'validity of rows over time' },
    axis(from, to, found.ticks, left, width, height), marks);
};

/** A measure over time: steps while rows hold, points of a stream; a line a key. */
export const steps = (found, said) => {
  const lines = groups(found).slice(0, 6);
  const [left, width, height] = [80, 770, 220];
  const [from, to] = span(found);
  const values = lines.flatMap(([, rows]) => rows.map(row => row[3])).filter(value => value !== null);
  if (!values.length) return h('p', { class: 'muted' }, 'There is no number to plot.');
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = at => left + (at - from) / (to - from) * width;
  const y = value => height - 8 - (value - low) / (high - low || 1) * (height - 20);
  const drawn = lines.map(([key, rows], k) => {
    const say = () => { said.textContent = `${key || '(all)'}: last ${found.measure} ${rows.at(-1)[3] ?? 'NULL'}`; };
    if (!found.relation) return s('g', { class: `l${k}`, onmouseenter: say }, rows.filter(row => row[3] !== null).map(row => s('circle', { cx: x(row[1]), cy: y(row[3]), r: 2.5 }, s('title', {}, `${key || '(all)'} ${named(row[1], found.ticks)}: ${row[3]}`))));
    const path = rows.filter(row => row[3] !== null).map(([, begun, ended, value]) => `M${x(begun).toFixed(1)} ${y(value).toFixed(1)}H${x(ended ?? Math.max(to, begun)).toFixed(1)}`);
    const joins = rows.slice(1).map((row, i) => (rows[i][2] === row[1] && row[3] !== null && rows[i][3] !== null ? `M${x(row[1]).toFixed(1)} ${y(rows[i][3]).toFixed(1)}V${y(row[3]).toFixed(1)}` : ''));
    return s('path', { class: `step l${k}`, d: path.join('') + joins.join(''), onmouseenter: say }, s('title', {}, key || '(all)'));
  });
  const label = (value, at) => s('text', { x: left - 6, y: at + 4, 'text-anchor': 'end' }, Number(value.toPrecision(5)).toLocaleString('en'));
  return h('div', {}, h('p', { class: 'legend' }, lines.map(([key], k) => h('span', { class: `key l${k}` }, key || '(all)')), groups(found).length > 6 ? h('span', {}, `and ${groups(found).length - 6} more keys`) : null),
    s('svg', { class: 'chart plot', viewBox: `0 0 ${left + width + 20} ${height + 22}`, role: 'img', 'aria-label': `${found.measure} over time` },
      axis(from, to, found.ticks, left, width, height), s('line', { x1: left, x2: left + width, y1: height, y2: height }), label(high, y(high)), low === high ? null : label(low, y(low)), drawn));
};

export { plain };
