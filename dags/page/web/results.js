// A query's results: now or as of an instant, and over time.
import { steps, validity } from './charts.js';
import { h, number, table } from './dom.js';
import { encode, get } from './server.js';
import { plain } from './times.js';

const option = (value, text, chosen) => h('option', { value, selected: value === chosen }, text);
const isNumber = type => /^(u?int|float|double|halffloat|decimal)/.test(type);

export const results = async one => {
  if (!one.tables.length) return h('p', { class: 'empty' }, 'It has no results yet.');
  const wanted = { table: one.tables[0], at: '', as: 'steps', measure: '', key: null };
  const [rows, plot] = [h('div', { class: 'rows-at' }), h('div', { class: 'over-time' })];
  const path = `${encode(one.app)}/${encode(one.name)}`;
  const inBox = (box, draw) => async () => {
    try {
      box.replaceChildren(await draw());
    } catch (error) {
      box.replaceChildren(h('p', { class: 'note bad' }, error.message));
    }
  };

  const showRows = inBox(rows, async () => {
    const found = await get(`results/${path}`, { table: wanted.table, at: wanted.at });
    if (!found.rows) return h('p', { class: 'empty' }, 'It has no results yet.');
    const when = wanted.at ? `at ${wanted.at}${found.ticks ? '' : ' UTC'}` : found.times.length === 2 ? 'now' : 'newest first';
    const names = [...found.columns.map(column => column.name), ...found.times];
    return h('div', {},
      h('p', { class: 'muted' }, `${found.more ? `The first ${number(found.rows.length)}` : number(found.rows.length)} rows, ${when}${found.left_out ? `; ${found.left_out} columns are left out` : ''}.`),
      found.rows.length ? table(names.map((name, i) => h('th', { scope: 'col', class: isNumber(found.columns[i]?.type ?? '') ? 'number' : null }, name)), found.rows.map(row => row.map((value, i) => {
        const column = found.columns[i];
        if (!column) return h('td', {}, value ? plain(value) : h('span', { class: 'muted' }, 'open'));
        return h('td', { class: isNumber(column.type) ? 'number' : null, title: column.type }, value === null ? h('i', { class: 'muted' }, 'NULL') : value);
      }))) : h('p', { class: 'empty' }, 'No row holds then.'));
  });

  const showPlot = inBox(plot, async () => {
    const found = await get(`plot/${path}`, { table: wanted.table, until: wanted.at, measure: wanted.measure, ...(wanted.key === null ? {} : { key: wanted.key }) });
    if (!found.rows?.length) return h('p', { class: 'empty' }, 'There is nothing to plot.');
    const said = h('p', { class: 'said' }, found.more ? `The newest ${number(found.rows.length)} rows.` : `${number(found.rows.length)} rows.`);
    const pick = (name, label, options, chosen) => h('label', {}, label, h('select', { name, onchange: event => { wanted[name] = event.target.value; showPlot(); } }, options.map(([value, text]) => option(value, text, chosen))));
    return h('div', {},
      h('div', { class: 'bar' },
        pick('as', 'Plot', [['steps', 'a measure as steps'], ['bars', 'validity as bars']], wanted.as),
        found.measures.length ? pick('measure', 'Measure', found.measures.map(name => [name, name]), found.measure) : null,
        found.columns.length ? pick('key', 'By', [['', 'all together'], ...found.columns.map(name => [name, name])], found.keys[0] ?? '') : null),
      h('div', { class: 'scroll' }, wanted.as === 'bars' || !found.measure ? validity(found, said) : steps(found, said)), said);
  });

  const instant = h('input', { name: 'at', placeholder: '2013-01-31 12:00:00', 'aria-label': 'instant, UTC or a tick', size: 20 });
  const ask = event => {
    event?.preventDefault();
    wanted.at = instant.value.trim();
    showRows();
    showPlot();
  };
  const box = h('div', {},
    h('form', { class: 'bar', onsubmit: ask },
      one.tables.length > 1 ? h('label', {}, 'Table', h('select', { name: 'table', onchange: event => { Object.assign(wanted, { table: event.target.value, measure: '', key: null }); ask(); } }, one.tables.map(name => option(name, name, wanted.table)))) : null,
      h('label', {}, one.clock ? 'As of (UTC)' : 'As of (tick)', instant), h('button', {}, 'Show'),
      h('button', { type: 'button', onclick: () => { instant.value = ''; ask(); } }, 'Now')),
    rows, h('h2', {}, 'Over time'), plot);
  await Promise.all([showRows(), showPlot()]);
  return box;
};
