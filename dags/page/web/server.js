// Who is asked: our own routes, and Airflow's REST API with the session of its UI, so that its permissions decide.
export const HERE = new URL('.', location.href);
export const AIRFLOW = new URL('..', HERE);

export class Refused extends Error {
  constructor(message, status) { super(message); this.status = status; }
}

const WHY = {
  401: 'You are not logged in, or your session has ended. Log in to Airflow again, then reload this page.',
  403: 'Your role in Airflow does not permit this.',
  404: 'There is nothing of that name that you may see.',
};

const asked = async (url, options = {}) => {
  let answer;
  try {
    answer = await fetch(url, { credentials: 'same-origin', ...options });
  } catch {
    throw new Refused('Airflow does not answer. Is its API server running?', 0);
  }
  const text = await answer.text();
  let body = text;
  try { body = text ? JSON.parse(text) : null; } catch { /* plain text */ }
  if (answer.ok) return body;
  const detail = typeof body === 'string' ? body : typeof body?.detail === 'string' ? body.detail : JSON.stringify(body?.detail ?? '');
  const known = WHY[answer.status];
  throw new Refused(known && answer.status !== 404 ? known : detail || known || `The server answered ${answer.status}.`, answer.status);
};

const withQuery = (base, path, parameters) => {
  const url = new URL(path, base);
  for (const [name, value] of Object.entries(parameters ?? {})) {
    for (const one of [value].flat()) if (one !== undefined && one !== null && one !== '') url.searchParams.append(name, one);
  }
  return url;
};
const json = (method, body) => ({
  method, body: JSON.stringify(body), headers: { 'Content-Type': 'application/json', 'X-SweepArea': '1' },
});

export const get = (path, parameters) => asked(withQuery(HERE, `api/${path}`, parameters));
export const post = (path, body) => asked(withQuery(HERE, `api/${path}`), json('POST', body));
export const rest = (path, parameters) => asked(withQuery(AIRFLOW, `api/v2/${path}`, parameters));
export const change = (method, path, body) => asked(withQuery(AIRFLOW, `api/v2/${path}`), json(method, body));
export const encode = encodeURIComponent;

const TAG = 'sweeparea';
const PAGE = 100;

const every = async parameters => {
  const found = [];
  for (let offset = 0; ; offset += PAGE) {
    const part = await rest('dags', { tags: TAG, limit: PAGE, offset, exclude_stale: false, ...parameters });
    found.push(...part.dags);
    if (!part.dags.length || found.length >= part.total_entries) return found;
  }
};

/** What Airflow says of our DAGs, by id; null where it cannot be asked. */
export const dags = async () => {
  try {
    const [all, failed, running] = await Promise.all(
      [every({}), every({ last_dag_run_state: 'failed' }), every({ last_dag_run_state: 'running' })]);
    const ids = list => new Set(list.map(one => one.dag_id));
    const [bad, busy] = [ids(failed), ids(running)];
    return new Map(all.map(one => [one.dag_id, {
      paused: one.is_paused, stale: one.is_stale, faulty: one.has_import_errors, failed: bad.has(one.dag_id), running: busy.has(one.dag_id),
    }]));
  } catch (error) {
    if (error.status === 401) throw error;
    return null;
  }
};
