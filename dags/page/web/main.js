// What is shown, by the address: the overview, one query, one stream, or what a DAG of Airflow's stands for.
import { h } from './dom.js';
import { overview } from './overview.js';
import { query } from './query.js';
import { dags, get } from './server.js';
import { joined } from './states.js';
import { stream } from './stream.js';
import { refresh } from './times.js';

const EVERY = 10000;
const wanted = new URLSearchParams(location.search);
const view = document.getElementById('view');

const split = text => {
  const at = text.indexOf('/');
  return [text.slice(0, at), text.slice(at + 1)];
};

const load = async () => {
  const [state, known] = await Promise.all([get('state'), dags()]);
  const all = kind => state.applications.flatMap(app => app[kind]).map(one => joined(one, known));
  return {
    queries: all('queries'), streams: all('streams'), broken: state.broken, asked: known !== null,
    mayEdit: new Set(state.may_edit), mayRun: new Set(state.may_run), dags: known,
  };
};

const ofDag = (state, id) => {
  const own = state.queries.find(one => one.dag === id);
  if (own) return ['query', own.app, own.name];
  const source = state.streams.find(one => one.dag === id);
  if (source) return ['stream', source.app, source.name];
  return ['overview', id];
};

const target = state => {
  if (wanted.has('query')) return ['query', ...split(wanted.get('query'))];
  if (wanted.has('stream')) return ['stream', ...split(wanted.get('stream'))];
  return wanted.has('dag') ? ofDag(state, wanted.get('dag')) : ['overview'];
};

const failed = error => h('div', { class: 'note bad' }, h('p', {}, error.message),
  h('p', {}, h('button', { type: 'button', onclick: () => location.reload() }, 'Reload')));

const start = async () => {
  let state;
  try {
    state = await load();
  } catch (error) {
    view.replaceChildren(failed(error));
    view.removeAttribute('aria-busy');
    return;
  }
  const [what, ...names] = target(state);
  const shown = { overview, query, stream }[what](view, names, wanted);
  const show = async () => {
    try {
      await shown(state);
      document.getElementById('lost')?.remove();
    } catch (error) {
      view.replaceChildren(failed(error));
    }
    view.removeAttribute('aria-busy');
  };
  await show();
  const again = async () => {
    if (document.hidden || document.querySelector('dialog[open]')) return;
    try {
      state = await load();
      await show();
    } catch (error) {
      if (!document.getElementById('lost')) {
        view.prepend(h('p', { id: 'lost', class: 'note bad' }, `What you see is old: ${error.message}`));
      }
    }
  };
  setInterval(again, EVERY);
  setInterval(refresh, 1000);
  addEventListener('changed', again);
};

start();
