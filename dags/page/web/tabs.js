// One name's page: its head with states and buttons, and tabs of which the chosen one is loaded when it is shown.
import { h } from './dom.js';
import { dag } from './links.js';
import { badges } from './states.js';

export const page = (view, names, wanted, { find, load, buttons, tabs }) => {
  const [app, name] = names;
  let tab = Object.keys(tabs).includes(wanted.get('tab')) ? wanted.get('tab') : Object.keys(tabs)[0];
  let state = null, shown = null, full = null, latest = '';
  const head = h('header', { class: 'one' });
  const body = h('div', { id: 'body', role: 'tabpanel' });
  const bar = h('div', { class: 'tabs', role: 'tablist' });

  const choose = async key => {
    tab = key;
    const address = new URLSearchParams(location.search);
    address.set('tab', key);
    history.replaceState(null, '', `?${address}`);
    drawTabs();
    latest = '';
    await drawBody();
  };
  const drawTabs = () => bar.replaceChildren(...Object.entries(tabs).map(([key, one]) => h('button', {
    type: 'button', role: 'tab', 'aria-selected': String(key === tab), data: { tab: key }, onclick: () => choose(key),
  }, one.label)));

  const drawHead = one => head.replaceChildren(
    h('p', { class: 'up' }, h('a', { href: location.pathname }, '‹ All streams and queries')),
    h('h1', {}, name, h('small', {}, ` ${app}`)),
    h('div', { class: 'line' }, badges(one), dag(one.dag, 'DAG in Airflow'), one.group ? dag(one.group, 'DAG that runs it') : null),
    h('ul', { class: 'why' }, one.states.filter(each => each.text).map(each => h('li', {}, each.text))),
    h('div', { class: 'buttons' }, buttons(one, state, full)));

  const drawBody = async () => {
    const chosen = tab;
    const print = tabs[chosen].own ? '' : JSON.stringify(full);
    // what a person is looking at, or typing into, stays unless there is something new
    if (latest === `${chosen} ${print}`) return;
    latest = `${chosen} ${print}`;
    const made = await Promise.resolve(tabs[chosen].draw(full, state)).catch(error => h('p', { class: 'note bad' }, error.message));
    if (chosen === tab) body.replaceChildren(made);
  };

  return async next => {
    const one = find(next, app, name);
    if (!one) {
      view.replaceChildren(h('p', {}, h('a', { href: location.pathname }, '‹ All streams and queries')),
        h('p', { class: 'note bad' }, `There is no ${app}/${name} that you may see.`));
      return;
    }
    state = next;
    full = await load(app, name);
    drawHead(one);
    if (!shown) {
      shown = true;
      drawTabs();
      view.replaceChildren(head, bar, body);
    }
    await drawBody();
  };
};
