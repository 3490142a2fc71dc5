// What can be done: through Airflow's REST API, so that its permissions decide; by our own routes what only we know.
import { h, number, tell } from './dom.js';
import { dag } from './links.js';
import { change, encode, post } from './server.js';
import { utc } from './times.js';

const changed = () => dispatchEvent(new Event('changed'));

const button = (label, may, why, act) => h('button', { type: 'button', disabled: !may, title: may ? null : why, onclick: async event => {
  const own = event.currentTarget;
  own.disabled = true;
  try {
    await act();
  } catch (error) {
    tell(error.message, 'bad');
  }
  own.disabled = false;
} }, label);

const started = (what, answer, id) => tell([`${what}: `, dag(id, answer?.dag_run_id ?? 'see its DAG'), '.']);
const trigger = (id, conf) => change('POST', `dags/${encode(id)}/dagRuns`, { logical_date: null, conf });
const NO_RUN = 'Your role in Airflow may not start runs of this DAG.';
const NO_EDIT = 'Your role in Airflow may not edit this DAG.';

export const run = (one, state) => {
  const repairs = one.states.some(each => each.kind === 'repairing');
  const label = one.inputs === undefined ? 'Admit now' : repairs ? 'Repair now' : 'Run now';
  return button(label, state.mayRun.has(one.dag), NO_RUN, async () => {
    started('A run was started', await trigger(one.dag, {}), one.dag);
    changed();
  });
};

export const pause = (one, state) => {
  const may = state.mayEdit.has(one.dag);
  // of a group the DAG runs others too, so the query itself is paused; what was paused so is resumed so
  if (one.group || one.paused) {
    return button(one.paused ? 'Resume query' : 'Pause query', may, NO_EDIT, async () => {
      const answer = await post(`pause/${encode(one.app)}/${encode(one.name)}`, { paused: !one.paused });
      tell(answer.told.join(' '));
      changed();
    });
  }
  const paused = state.dags?.get(one.dag)?.paused ?? false;
  return button(paused ? 'Unpause DAG' : 'Pause DAG', may, NO_EDIT, async () => {
    await change('PATCH', `dags/${encode(one.dag)}?update_mask=is_paused`, { is_paused: !paused });
    tell(`${one.dag} is ${paused ? 'unpaused' : 'paused'}.`);
    changed();
  });
};

/** A form in a dialog; `send` gets its fields, and what it throws stands in the dialog. */
const dialog = (title, fields, label, send, more = []) => {
  const fault = h('p', { class: 'note bad', hidden: true });
  const box = h('dialog', { 'aria-label': title, onclose: () => box.remove() });
  const tried = act => async event => {
    event?.preventDefault();
    fault.hidden = true;
    try {
      await act(Object.fromEntries(new FormData(form)), box);
    } catch (error) {
      fault.hidden = false;
      fault.textContent = error.message;
    }
  };
  const form = h('form', { method: 'dialog', onsubmit: tried(send) }, h('h2', {}, title), fields, fault,
    h('div', { class: 'buttons' }, h('button', { class: 'main' }, label),
      more.map(([text, act]) => h('button', { type: 'button', onclick: tried(act) }, text)),
      h('button', { type: 'button', onclick: () => box.close() }, 'Cancel')));
  box.append(form);
  document.body.append(box);
  box.showModal();
};

const day = ms => utc(ms).slice(0, 10);

export const backfill = (one, state, full) => {
  const can = state.mayRun.has(one.dag) && full?.clock !== false;
  const why = full?.clock === false ? 'BIGINT time has no dates: use sweeparea process APP QUERY --until TICK.' : NO_RUN;
  return button('Backfill …', can, why, () => {
    const end = one.committed?.ms ?? Date.now();
    const found = h('p', { class: 'muted' }, 'Computes a range of instants again, slice by slice, and replaces what differs.');
    const body = ({ from, to }) => ({
      dag_id: one.dag, from_date: `${from}:00Z`.replace(/(T\d\d:\d\d:\d\d):00Z$/, '$1Z'), to_date: `${to}:00Z`.replace(/(T\d\d:\d\d:\d\d):00Z$/, '$1Z'),
      reprocess_behavior: 'completed', max_active_runs: 1, run_backwards: false, dag_run_conf: {},
    });
    dialog(`Backfill ${one.name}`, [
      h('label', {}, 'From (UTC)', h('input', { type: 'datetime-local', name: 'from', required: true, value: `${day(end - 86400000)}T00:00` })),
      h('label', {}, 'To, not included (UTC)', h('input', { type: 'datetime-local', name: 'to', required: true, value: `${day(end)}T00:00` })), found,
    ], 'Start', async (fields, box) => {
      const answer = await change('POST', 'backfills', body(fields));
      box.close();
      tell([`Backfill ${answer.id} was started: `, dag(one.dag, 'its runs'), '.']);
      changed();
    }, [['How many slices?', async fields => {
      const answer = await change('POST', 'backfills/dry_run', body(fields));
      found.textContent = `${number(answer.total_entries)} slices.`;
    }]]);
  });
};

export const advance = (one, state) => button('Move heartbeat …', state.mayEdit.has(one.dag), NO_EDIT, () => dialog(
  `Move the heartbeat of ${one.name}`, [
    h('p', { class: 'muted' }, 'Says that no row will come any more up to this instant. It cannot be taken back: rows at or below it that come later are late.'),
    h('label', {}, 'Up to (UTC, or a tick)', h('input', { name: 'instant', required: true, placeholder: '2013-01-31 12:00:00' })),
  ], 'Move', async ({ instant }, box) => {
    const answer = await post(`heartbeat/${encode(one.app)}/${encode(one.name)}`, { instant });
    box.close();
    tell(`The heartbeat of ${one.name} is ${answer.heartbeat}; it was ${answer.was ?? 'none'}.`);
    changed();
  }));

/** The button that releases the chosen rows; `count` says anew how many these are. */
export const release = (one, state, chosen) => {
  const may = state.mayRun.has(one.dag);
  const element = button('Release', may, NO_RUN, () => dialog(`Release ${chosen.size} rows of ${one.name}`, [
    h('p', { class: 'muted' }, 'They are judged again and admitted after all; results that they change are repaired. One value may be put right in all of them first.'),
    h('label', {}, 'Column (may be empty)', h('input', { name: 'column' })), h('label', {}, 'Value', h('input', { name: 'value' })),
  ], 'Release', async ({ column, value }, box) => {
    const set = column.trim() ? { set: { [column.trim()]: value } } : {};
    const answer = await trigger(one.dag, { release: { ids: [...chosen], ...set } });
    box.close();
    started('The release was started', answer, one.dag);
    changed();
  }));
  const count = () => {
    element.disabled = !may || !chosen.size;
    element.textContent = chosen.size ? `Release ${chosen.size}` : 'Release the chosen';
  };
  count();
  return { element, count };
};
