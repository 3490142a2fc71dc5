// One stream or relation.
import { advance, pause, release, run } from './actions.js';
import { commits } from './charts.js';
import { h, number, table } from './dom.js';
import { definition, facts, links } from './query.js';
import { encode, get } from './server.js';
import { page } from './tabs.js';
import { both, lag, plain, time } from './times.js';

const TOTALS = {
  late: 'late', repaired: 'admitted below the heartbeat', deduplicated: 'duplicates dropped', reinstated: 'of them elements since a kept row was taken back',
  displaced: 'elements that these made duplicates', ignored: 'removed by the source and kept', taken_back: 'taken back by the source',
  cancelled: 'taken back from quarantine', released: 'released from quarantine', clamped: 'heartbeats that would have gone back', distant: 'heartbeats too far in the future',
};

const how = (one, state) => h('div', {},
  facts([
    one.static ? ['contents', 'static: copied once'] : ['heartbeat', time(one.heartbeat, 'none yet')],
    one.static ? null : ['lag behind the clock', [lag(one.lag), one.trend.word ? `, ${one.trend.word}` : '']],
    ['source version admitted', one.version === null ? 'none yet' : `${number(one.version)}${one.newest === null ? '; the newest is not known' : one.newest > one.version ? `; the newest is ${number(one.newest)}` : ', the newest'}`],
    ['last commit', time(one.at, 'never')],
    ['rows admitted', number(one.admitted)],
    ['in quarantine', [number(one.quarantined), one.remembered ? `, and ${number(one.remembered)} duplicates remembered` : '']],
    ...Object.entries(TOTALS).filter(([key]) => one.totals[key]).map(([key, label]) => [label, number(one.totals[key])]),
    ['source', h('code', {}, one.uri)],
    ['read by', links(state, one.app, one.readers)],
  ]),
  h('p', { class: 'status muted' }, h('code', {}, 'sweeparea status'), ` says: ${one.status}`));

const words = each => `Commit ${each.seq}: source version ${each.version}, ${number(each.rows)} rows, ${number(each.quarantined)} kept out; heartbeat ${plain(each.to)}; committed ${each.at ? both(each.at.ms) : ''}`;

const admissions = one => {
  if (!one.admits.length) return h('p', { class: 'empty' }, 'Nothing was admitted yet.');
  return h('div', {},
    commits([...one.admits].reverse(), { parts: each => [each.rows, each.quarantined], partNames: ['admitted', 'kept out'], unit: 'rows', counts: each => each.rows + each.quarantined, words }),
    table(['commit', 'source version', 'committed', 'heartbeat', 'rows', 'kept out'], one.admits.slice(0, 60).map(each => [
      each.seq, number(each.version), time(each.at), one.static ? 'static' : time(each.to, 'none yet'), number(each.rows), number(each.quarantined)])));
};

const quarantine = async (one, state, reason = null) => {
  const found = await get(`quarantine/${encode(one.app)}/${encode(one.name)}`, { reason });
  if (!found.reasons.length) return h('p', { class: 'empty' }, 'No row was kept out.');
  const box = h('div', {});
  const show = async why => box.replaceWith(await quarantine(one, state, why));
  const chosen = new Set();
  const button = release(one, state, chosen);
  const rows = table(['', 'id', 'version', 'instant', 'copies', 'reason', 'row'], found.rows.map(row => [
    row.id ? h('input', {
      type: 'checkbox', 'aria-label': `choose ${row.id}`,
      onchange: event => { if (event.target.checked) chosen.add(row.id); else chosen.delete(row.id); button.count(); },
    }) : '', h('td', { class: 'whole' }, row.id ?? 'too long'), number(row.version), time(row.instant), row.copies, row.reason, h('code', {}, row.row)]));
  box.append(
    found.late ? h('p', {}, `${number(found.late.rows)} late rows in ${number(found.late.commits)} commits${found.late.most ? `, behind the heartbeat by up to ${lag(found.late.most)}: a bound of disorder that is longer by that would have let them in` : ''}.`) : '',
    table(['reason', 'rows', 'last commit'], found.reasons.map(each => [
      h('button', { type: 'button', class: 'link', 'aria-pressed': String(each.reason === reason), onclick: () => show(each.reason === reason ? null : each.reason) }, each.reason), number(each.rows), each.seq])),
    h('h2', {}, reason ? 'The newest rows for this reason' : 'The newest rows'), button.element, rows,
    found.more ? h('p', { class: 'muted' }, 'More of them: ', h('code', {}, `sweeparea quarantine list ${one.app} ${one.name}`)) : '');
  return box;
};

export const stream = (view, names, wanted) => page(view, names, wanted, {
  find: (state, app, name) => state.streams.find(one => one.app === app && one.name === name),
  load: (app, name) => get(`stream/${encode(app)}/${encode(name)}`),
  buttons: (one, state, full) => [run(one, state), full?.manual ? advance(one, state) : null, pause(one, state)],
  tabs: {
    how: { label: 'How it is', draw: how },
    admissions: { label: 'Admissions', draw: admissions },
    quarantine: { label: 'Quarantine', own: true, draw: (full, state) => quarantine(full, state) },
    definition: { label: 'Definition', draw: definition },
  },
});
