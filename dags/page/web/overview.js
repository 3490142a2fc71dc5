// All streams and queries: search, filter, sort; tables or a graph.
import { graph } from './graph.js';
import { bytes, h, number, table } from './dom.js';
import { toQuery, toStream, dag } from './links.js';
import { badges, isTrouble, KINDS } from './states.js';
import { sparkline } from './charts.js';
import { lag, time } from './times.js';

const TREND = { growing: '↗ growing', shrinking: '↘ shrinking', steady: '→ steady' };
const lagOf = one => one.lag?.ms ?? -1;
const SORTS = {
  trouble: ['trouble', (a, b) => a.rank - b.rank || lagOf(b) - lagOf(a) || a.name.localeCompare(b.name)],
  lag: ['lag', (a, b) => lagOf(b) - lagOf(a) || a.name.localeCompare(b.name)],
  name: ['name', (a, b) => a.name.localeCompare(b.name) || a.app.localeCompare(b.app)],
  last: ['last commit', (a, b) => (b.at?.ms ?? 0) - (a.at?.ms ?? 0)],
};
const FILTERS = {
  all: ['all', () => true],
  trouble: ['in trouble', isTrouble],
  work: ['at work or behind', one => one.tone === 'work'],
  good: ['up to date', one => one.tone === 'good'],
};

const kept = new URLSearchParams(location.search);
const keep = (name, value, usual) => {
  if (value === usual) kept.delete(name); else kept.set(name, value);
  history.replaceState(null, '', kept.size ? `?${kept}` : location.pathname);
};

const lagCell = one => [
  h('b', { title: one.lag?.since_commit ? 'time since the last commit: its time is no clock’s' : one.lag?.never ? 'since it was deployed' : 'behind the clock' }, one.static ? '–' : lag(one.lag)),
  one.trend.points.length > 1 ? sparkline(one.trend.points) : null,
  one.trend.word ? h('small', {}, TREND[one.trend.word]) : null,
];

const state = one => h('td', { class: 'state' }, h('div', {}, badges(one)), h('small', { class: 'why' }, one.states.slice(0, 2).map(each => each.text).filter(Boolean).join(' ')));
const named = (one, href) => h('td', { class: 'name' }, h('a', { href }, one.name), h('small', {}, one.app, ' · ', dag(one.dag, 'DAG')));

const streamRow = one => [
  named(one, toStream(one.app, one.name)),
  state(one),
  one.static ? h('span', { class: 'muted' }, 'static') : time(one.heartbeat, 'none yet'),
  h('td', { class: 'lag' }, lagCell(one)),
  h('td', {}, one.version === null ? '–' : `version ${number(one.version)}`,
    h('small', {}, one.newest === null ? (one.version === null ? '' : 'newest unknown') : one.newest > (one.version ?? -1) && !one.static ? `newest ${number(one.newest)}` : one.version === null ? '' : 'newest')),
  h('td', { class: 'number' }, number(one.admitted)),
  h('td', { class: 'number' }, number(one.late)),
  h('td', { class: 'number' }, one.quarantined ? h('a', { href: toStream(one.app, one.name, 'quarantine') }, number(one.quarantined)) : number(one.quarantined)),
];

const rowsOut = rows => Object.values(rows).reduce((sum, count) => sum + count, 0);
const phases = one => [...Object.entries(one.phases).map(([name, seconds]) => `${name} ${seconds.toFixed(2)} s`), ...Object.entries(one.rows).map(([kind, rows]) => `${number(rows)} ${kind}`)].join(', ') || null;
const queryRow = one => [
  named(one, toQuery(one.app, one.name)),
  state(one),
  time(one.committed, 'nothing yet'),
  h('td', { class: 'lag' }, lagCell(one)),
  h('td', {}, one.behind ? lag(one.behind) : '–'),
  h('td', { title: phases(one) }, one.seconds === null ? '–' : `${one.seconds.toFixed(2)} s`, h('small', {}, one.seconds === null ? '' : `${number(rowsOut(one.rows))} rows`)),
  h('td', {}, one.state_rows === null ? '–' : number(one.state_rows), h('small', {}, one.state_rows === null ? '' : bytes(one.state_bytes))),
  h('td', {}, one.checks ? (Object.keys(one.warnings).length ? h('span', { class: 'badge warn' }, `${Object.keys(one.warnings).length} warning${Object.keys(one.warnings).length > 1 ? 's' : ''}`) : `${one.checks} passed`) : '–'),
];

const STREAM_HEADS = ['stream or relation', 'state', 'heartbeat', 'lag', 'source', 'admitted', 'late', 'quarantine'];
const QUERY_HEADS = ['query', 'state', 'committed up to', 'lag', 'behind inputs', 'last slice', 'state rows', 'verdict'];

const headers = (names, sortBy) => names.map(name => {
  const key = { query: 'name', 'stream or relation': 'name', state: 'trouble', lag: 'lag' }[name];
  if (!key) return h('th', { scope: 'col' }, name);
  return h('th', { scope: 'col', 'aria-sort': chosen.sort === key ? 'descending' : null },
    h('button', { type: 'button', onclick: () => sortBy(key) }, name, chosen.sort === key ? h('span', { 'aria-hidden': 'true' }, ' ▾') : null));
});

const chosen = {
  search: kept.get('search') ?? '', app: kept.get('app') ?? '', filter: FILTERS[kept.get('filter')] || KINDS[kept.get('filter')] ? kept.get('filter') : 'all',
  sort: SORTS[kept.get('sort')] ? kept.get('sort') : 'trouble', as: kept.get('as') === 'graph' ? 'graph' : 'table',
};

const select = (name, label, options, usual, redraw) => h('label', {}, label, h('select', {
  name, onchange: event => { chosen[name] = event.target.value; keep(name, event.target.value, usual); redraw(); },
}, options.map(([value, text]) => h('option', { value, selected: chosen[name] === value }, text))));

const chips = (queries, redraw) => [
  ['all', queries.length, ''], ['trouble', queries.filter(isTrouble).length, 'bad'],
  ['work', queries.filter(one => one.tone === 'work').length, 'work'], ['good', queries.filter(one => one.tone === 'good').length, 'good'],
].map(([key, count, tone]) => h('button', {
  type: 'button', class: `chip ${count ? tone : ''}`, 'aria-pressed': String(chosen.filter === key), data: { filter: key },
  onclick: () => { chosen.filter = key; keep('filter', key, 'all'); redraw(true); },
}, h('b', {}, number(count)), ` ${FILTERS[key][0]}`));

export const overview = (view, [strangeDag]) => {
  let state = null;
  const bar = h('div', { class: 'bar' });
  const counts = h('div', { class: 'chips', role: 'group', 'aria-label': 'filter queries' });
  const body = h('div', { id: 'body' });
  const search = h('input', {
    type: 'search', name: 'search', placeholder: 'Search names', 'aria-label': 'search names', value: chosen.search,
    oninput: event => { chosen.search = event.target.value; keep('search', event.target.value, ''); draw(); },
  });
  const sortBy = key => { chosen.sort = key; keep('sort', key, 'trouble'); tools(); draw(); };
  const redraw = (tooling = false) => { if (tooling === true) tools(); draw(); };

  const tools = () => {
    const apps = [...new Set([...state.queries, ...state.streams].map(one => one.app))].sort();
    const kinds = Object.entries(KINDS).map(([kind, [label]]) => [kind, label]);
    bar.replaceChildren(
      search,
      apps.length > 1 ? select('app', 'Application', [['', 'all'], ...apps.map(app => [app, app])], '', redraw) : '',
      select('filter', 'Show', [...Object.entries(FILTERS).map(([key, [label]]) => [key, label]), ...kinds], 'all', redraw),
      select('sort', 'Sort by', Object.entries(SORTS).map(([key, [label]]) => [key, label]), 'trouble', redraw),
      select('as', 'As', [['table', 'tables'], ['graph', 'graph']], 'table', redraw));
  };

  // a DAG's own tab, of one that runs several queries
  const ofGroup = () => strangeDag && state.queries.some(one => one.group === strangeDag);
  const shown = list => {
    const words = chosen.search.toLowerCase().split(/\s+/).filter(Boolean);
    const passes = FILTERS[chosen.filter]?.[1] ?? (one => one.states.some(each => each.kind === chosen.filter));
    return list.filter(one => (!ofGroup() || one.group === strangeDag) && (!chosen.app || one.app === chosen.app) && passes(one)
      && words.every(word => `${one.app}/${one.name} ${one.dag}`.toLowerCase().includes(word))).sort(SORTS[chosen.sort][1]);
  };

  const section = (id, title, all, list, heads, row) => (all.length ? h('section', { 'aria-labelledby': id },
    h('h2', { id }, title, h('span', { class: 'count' }, list.length === all.length ? number(all.length) : `${number(list.length)} of ${number(all.length)}`)),
    list.length ? table(headers(heads, sortBy), list.map(row), { class: 'cards' }) : h('p', { class: 'muted' }, 'None of them fits the search and filter.')) : null);

  const draw = () => {
    counts.replaceChildren(...chips(state.queries, redraw));
    const [streams, queries] = [shown(state.streams), shown(state.queries)];
    const parts = Object.entries(state.broken).map(([name, text]) => h('div', { class: 'note bad' }, h('b', {}, name), h('pre', {}, text)));
    if (!state.asked) parts.push(h('p', { class: 'note warn' }, 'Airflow does not say how its DAGs are, so paused, failed and missing DAGs are not shown here.'));
    if (strangeDag) parts.push(h('p', { class: 'note' }, ofGroup() ? `The DAG ${strangeDag} runs these queries.` : `The DAG ${strangeDag} runs no stream and no single query.`));
    if (!state.streams.length && !state.queries.length && !parts.length) {
      parts.push(h('p', { class: 'empty' }, 'There is no application that you may see yet. Put a folder with .cql files under queries/, and its streams and queries appear here.'));
    } else if (chosen.as === 'graph') {
      parts.push(graph(streams, queries, state));
    } else {
      parts.push(section('queries', 'Queries', state.queries, queries, QUERY_HEADS, queryRow));
      parts.push(section('streams', 'Streams and relations', state.streams, streams, STREAM_HEADS, streamRow));
    }
    body.replaceChildren(...parts.filter(Boolean));
  };

  return next => {
    const first = state === null;
    state = next;
    if (first) {
      tools();
      view.replaceChildren(
        h('header', {}, h('h1', {}, 'Continuous queries'), counts),
        bar, body,
        h('p', { class: 'muted foot' }, 'A stream’s heartbeat says up to where it is complete. A query is ready up to the least heartbeat of its inputs. Lag is behind the clock.'));
    }
    draw();
  };
};
