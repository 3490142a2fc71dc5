// True states: what the ledger says of a name, joined with what Airflow says of its DAG; the worst first.
import { h } from './dom.js';

export const KINDS = {
  wrong: ['tables are wrong', 'bad'],
  failed: ['failed', 'bad'],
  stands_still: ['stands still', 'bad'],
  gone: ['DAG is gone', 'bad'],
  lost: ['source is lost', 'bad'],
  faulty: ['DAG has errors', 'bad'],
  incident: ['incident', 'bad'],
  repairing: ['repairing', 'work'],
  warned: ['warned', 'warn'],
  paused: ['paused', 'warn'],
  never: ['never ran', 'warn'],
  waiting: ['waits', 'warn'],
  running: ['running', 'work'],
  behind: ['behind', 'work'],
  current: ['up to date', 'good'],
  static: ['static', 'good'],
};
const ORDER = Object.keys(KINDS);

/** A stream or query with all its states; `known` is what Airflow says of DAGs by id, null where it does not say. */
export const joined = (one, known) => {
  const states = [...one.states];
  if (known) {
    const live = one.group ?? one.dag;
    const [own, by] = [known.get(one.dag), known.get(live)];
    const add = (kind, text) => states.push({ kind, text });
    if (!own || own.stale) add('gone', `Airflow has no DAG ${one.dag} any more, so nothing runs it.`);
    else if (one.group && (!by || by.stale)) add('gone', `Airflow has no DAG ${one.group} any more, which ran it.`);
    const due = states.some(state => ['behind', 'repairing', 'never'].includes(state.kind));
    if (own?.failed) add('failed', `The last run of its DAG ${one.dag} has failed.`);
    else if (one.group && by?.failed && due) add('failed', `The last run of the DAG ${one.group}, which runs it, has failed.`);
    if (own?.faulty || by?.faulty) add('faulty', 'Its DAG file has import errors.');
    if (by?.paused) add('paused', `Its DAG ${live} is paused in Airflow.`);
    if (own?.running || (due && by?.running)) add('running', 'A run is at work.');
  }
  // who is up to date but broken is not well: what was committed last stands in its own column
  const calm = ['current', 'static'];
  if (states.some(state => KINDS[state.kind][1] === 'bad')) states.splice(0, states.length, ...states.filter(state => !calm.includes(state.kind)));
  states.sort((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind));
  return { ...one, states, rank: ORDER.indexOf(states[0].kind), tone: KINDS[states[0].kind][1] };
};

export const isTrouble = one => one.tone === 'bad' || one.tone === 'warn';

export const badge = state => h('span', { class: `badge ${KINDS[state.kind][1]}`, title: state.text || null, data: { kind: state.kind } }, KINDS[state.kind][0]);

/** Badges without saying one thing twice, and the words of the worst. */
export const badges = one => {
  const seen = new Set();
  return one.states.filter(state => !seen.has(state.kind) && seen.add(state.kind)).map(badge);
};
