// Elements from data. Texts become text nodes only, so nothing that a name or a row says is ever read as markup.
const SVG = 'http://www.w3.org/2000/svg';

const fill = (made, properties, children) => {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (name === 'data') Object.assign(made.dataset, value);
    else if (name === 'value' || name === 'checked' || name === 'disabled' || name === 'selected') made[name] = value;
    else made.setAttribute(name, value === true ? '' : String(value));
  }
  made.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
  return made;
};

export const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
export const s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

/** A table in a box that scrolls by itself; on a narrow window each row is a card, labelled by the heads. */
export const table = (heads, rows, properties = {}) => {
  const head = heads.map(one => (one instanceof Node ? one : h('th', { scope: 'col' }, one)));
  const names = head.map(one => one.textContent);
  const line = cells => h('tr', {}, cells.map((cell, i) => {
    const box = cell instanceof HTMLTableCellElement ? cell : h('td', {}, cell ?? '–');
    box.dataset.label = (names[i] ?? '').replace(' ▾', '');
    return box;
  }));
  return h('div', { class: 'scroll' }, h('table', properties, h('thead', {}, h('tr', {}, head)), h('tbody', {}, rows.map(line))));
};

export const number = value => (value === null || value === undefined ? '–' : Number(value).toLocaleString('en'));

export const bytes = size => {
  if (size === null || size === undefined) return '–';
  for (const unit of ['B', 'kB', 'MB', 'GB']) {
    if (size < 1000 || unit === 'GB') return `${unit === 'B' ? size : size.toFixed(1)} ${unit}`;
    size /= 1000;
  }
  return '';
};

/** Says something for some seconds, as text or elements. */
export const tell = (what, tone = 'good') => {
  const box = h('p', { class: `note ${tone}` }, h('span', {}, what), h('button', { class: 'close', type: 'button', 'aria-label': 'close', onclick: () => box.remove() }, '×'));
  document.getElementById('told').replaceChildren(box);
  if (tone === 'good') setTimeout(() => box.remove(), 12000);
};
