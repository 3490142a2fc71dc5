// Where links lead: within the page, and out of its frame into Airflow's UI.
import { h } from './dom.js';
import { AIRFLOW } from './server.js';

export const toQuery = (app, name, tab) => `?${new URLSearchParams({ query: `${app}/${name}`, ...(tab ? { tab } : {}) })}`;
export const toStream = (app, name, tab) => `?${new URLSearchParams({ stream: `${app}/${name}`, ...(tab ? { tab } : {}) })}`;

// the frame may not move the window around it, but Airflow's document, of the same origin, may
const leave = event => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || window.parent === window) return;
  event.preventDefault();
  const url = event.currentTarget.href;
  try {
    const link = window.parent.document.createElement('a');
    link.href = url;
    window.parent.document.body.append(link);
    link.click();
    link.remove();
  } catch { window.location.assign(url); }
};

export const airflow = (path, ...text) => h('a', { href: new URL(path, AIRFLOW).href, class: 'out', onclick: leave }, text);
export const dag = (id, ...text) => airflow(`dags/${encodeURIComponent(id)}`, ...(text.length ? text : [id]));
