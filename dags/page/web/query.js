// One continuous query.
import { backfill, pause, run } from './actions.js';
import { commits } from './charts.js';
import { bytes, h, number, table } from './dom.js';
import { toQuery, toStream } from './links.js';
import { plan } from './plan.js';
import { results } from './results.js';
import { encode, get } from './server.js';
import { page } from './tabs.js';
import { both, lag, plain, time } from './times.js';

const PHASES = ['plan', 'read', 'compute', 'quality'];
const TREND = { growing: 'growing', shrinking: 'shrinking', steady: 'steady' };

const facts = rows => h('dl', { class: 'facts' }, rows.filter(Boolean).map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value ?? '–'))));

const link = (state, app, name) => {
  const stream = state.streams.find(one => one.app === app && one.name === name);
  const query = state.queries.find(one => one.app === app && one.name === name);
  return stream ? h('a', { href: toStream(app, name) }, name) : query ? h('a', { href: toQuery(app, name) }, name) : name;
};
const links = (state, app, names) => (names.length ? names.flatMap((name, i) => [i ? ', ' : '', link(state, app, name)]) : 'nothing');

const how = (one, state) => h('div', {},
  facts([
    ['committed up to', time(one.committed, 'nothing yet')],
    ['inputs known up to', time(one.ready, one.committed ? 'the end of time' : 'not yet')],
    ['lag behind the clock', [lag(one.lag), one.trend.word ? `, ${TREND[one.trend.word]}` : '']],
    ['behind its inputs', one.behind ? lag(one.behind) : '–'],
    ['last commit', time(one.at, 'never')],
    ['last slice', one.seconds === null ? '–' : `${one.seconds.toFixed(2)} s`],
    ['reads', links(state, one.app, one.inputs)],
    ['read by', links(state, one.app, one.readers)],
  ]),
  h('h2', {}, 'What holds it back'),
  h('ol', { class: 'held' }, one.held_back.map(sentence => h('li', {}, sentence))),
  h('p', { class: 'status muted' }, h('code', {}, 'sweeparea status'), ` says: ${one.status}`),
  h('h2', {}, 'Verdict of the last slice'), verdict(one.slices[0]),
  h('h2', {}, 'State'),
  one.areas.length ? table(['SweepArea', 'rows', 'count now', 'bytes', 'written last', 'keyed by'], one.areas.map(area => [
    area.op, number(area.rows), number(area.live), bytes(area.bytes), number(area.touched), area.keys.join(', ') || '–'])) : h('p', { class: 'muted' }, 'It keeps nothing yet.'));

const verdict = slice => {
  if (!slice || !slice.verdicts.length) return h('p', { class: 'muted' }, 'Nothing was judged yet.');
  return table(['table', 'rows', 'checks', 'verdict'], slice.verdicts.map(each => [
    each.table, number(each.rows), number(each.checks),
    Object.keys(each.warnings ?? {}).length
      ? h('ul', { class: 'warnings' }, Object.entries(each.warnings).map(([check, count]) => h('li', {}, `${check}: ${number(count)} rows break it`)))
      : h('span', { class: 'badge good' }, 'passed')]));
};

const rowsOut = slice => Object.values(slice.rows).reduce((a, b) => a + b, 0);
const said = slice => `Slice ${slice.seq}: ${slice.from ? `after ${plain(slice.from)} ` : ''}up to ${plain(slice.to)}, committed ${slice.at ? both(slice.at.ms) : ''}: ${Object.entries(slice.seconds).map(([phase, s]) => `${phase} ${s.toFixed(2)} s`).join(', ') || 'no phases'}; ${number(slice.rows_in)} rows in, ${Object.entries(slice.rows).map(([kind, n]) => `${number(n)} ${kind}`).join(', ') || 'none'} out`;

const slices = one => {
  if (!one.slices.length) return h('p', { class: 'empty' }, 'It has not processed any slice yet.');
  const names = [...new Set(one.slices.flatMap(slice => Object.keys(slice.seconds)))].sort((a, b) => PHASES.indexOf(a) - PHASES.indexOf(b));
  return h('div', {},
    commits([...one.slices].reverse(), {
      parts: slice => names.map(name => slice.seconds[name] ?? 0), partNames: names, unit: 's', counts: rowsOut, words: said,
    }),
    table(['slice', 'up to', 'committed', ...names.map(name => `${name}, s`), 'rows in', 'rows out', 'state', 'verdict'], one.slices.slice(0, 60).map(slice => [
      slice.seq, time(slice.to), time(slice.at), ...names.map(name => (slice.seconds[name] ?? 0).toFixed(2)), number(slice.rows_in),
      h('span', { title: Object.entries(slice.rows).map(([kind, n]) => `${kind} ${n}`).join(', ') }, number(rowsOut(slice))),
      [number(slice.state_rows), h('small', {}, bytes(slice.state_bytes))],
      slice.verdicts.some(each => Object.keys(each.warnings ?? {}).length) ? h('span', { class: 'badge warn' }, 'warnings') : slice.verdicts.length ? h('span', { class: 'badge good' }, 'passed') : '–',
    ])));
};

const corrections = async one => {
  const found = await get(`corrections/${encode(one.app)}/${encode(one.name)}`);
  const last = one.slices.find(slice => slice.rewrite)?.rewrite;
  if (!found.commits.length) return h('div', {}, last ? h('p', {}, `Results changed last by ${last.cause} (${last.rows}).`) : null, h('p', { class: 'empty' }, 'Nothing that it had published was changed afterwards.'));
  return h('div', {},
    h('p', { class: 'muted' }, 'What was changed in results that were published already: by late rows, backfills, new definitions. A row stands with its sign: so many copies more or less from that instant on.'),
    table(['commit', 'cause', 'rows came', 'rows went', 'from', 'to'], found.commits.map(each => [each.seq, each.cause, number(each.come), number(each.gone), time(each.from), time(each.to)])),
    h('h2', {}, 'The newest rows'),
    table(['commit', 'table', 'instant', 'sign', 'row'], found.rows.map(each => [each.seq, each.kind, time(each.at), each.sign > 0 ? `+${each.sign}` : each.sign, h('code', {}, each.row)])),
    found.more ? h('p', { class: 'muted' }, 'More of them in the table ', h('code', {}, `${one.name}__corrections`), '.') : null);
};

const definition = one => h('div', {}, h('p', { class: 'muted' }, one.place), h('pre', { class: 'text' }, one.text));

export const query = (view, names, wanted) => page(view, names, wanted, {
  find: (state, app, name) => state.queries.find(one => one.app === app && one.name === name),
  load: (app, name) => get(`query/${encode(app)}/${encode(name)}`),
  buttons: (one, state, full) => [run(one, state), backfill(one, state, full), pause(one, state)],
  tabs: {
    how: { label: 'How it is', draw: how },
    slices: { label: 'Slices', draw: slices },
    results: { label: 'Results', own: true, draw: results },
    plan: { label: 'Plan', own: true, draw: plan },
    corrections: { label: 'Corrections', own: true, draw: corrections },
    definition: { label: 'Definition', draw: definition },
  },
});

export { facts, links, definition };
