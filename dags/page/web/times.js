// Instants for people: how long ago, in the user's zone (Airflow's setting, else the browser's), and in UTC beside it.
import { h } from './dom.js';

const zone = () => {
  let chosen = null;
  try { chosen = localStorage.getItem('timezone'); } catch { /* storage is closed to this frame */ }
  chosen = chosen?.replace(/^"|"$/g, '');
  try {
    if (chosen) new Intl.DateTimeFormat('en', { timeZone: chosen });
  } catch { chosen = null; }
  return chosen || Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';
};
export const ZONE = zone();

const UNITS = [['year', 31557600], ['month', 2629800], ['day', 86400], ['hour', 3600], ['minute', 60], ['second', 1]];
const words = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const written = new Map();

const writer = (timeZone, seconds) => {
  const key = `${timeZone} ${seconds}`;
  if (!written.has(key)) {
    written.set(key, new Intl.DateTimeFormat('sv-SE', {
      timeZone, year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit',
      ...(seconds ? { second: '2-digit' } : {}),
    }));
  }
  return written.get(key);
};
const zoneName = (ms, timeZone) => new Intl.DateTimeFormat('en', { timeZone, timeZoneName: 'short' })
  .formatToParts(ms).find(part => part.type === 'timeZoneName')?.value ?? timeZone;
const inRange = ms => Math.abs(ms) < 8.64e15;

export const relative = (ms, now = Date.now()) => {
  const seconds = (ms - now) / 1000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size || unit === 'second') return words.format(Math.round(seconds / size), unit);
  }
  return '';
};

export const local = (ms, seconds = true) => (inRange(ms) ? `${writer(ZONE, seconds).format(ms)} ${zoneName(ms, ZONE)}` : String(ms));
export const utc = (ms, seconds = true) => (inRange(ms) ? `${writer('UTC', seconds).format(ms)} UTC` : String(ms));

export const both = ms => (ZONE === 'UTC' || !inRange(ms) ? utc(ms) : `${local(ms)} · ${utc(ms)}`);

/** What the server says of an instant: {ms} or {tick}. */
export const plain = moment => (!moment ? '–' : moment.ms === undefined ? `tick ${moment.tick}` : both(moment.ms));

export const time = (moment, none = '–') => {
  if (!moment) return h('span', { class: 'muted' }, none);
  if (moment.ms === undefined) return h('span', { title: 'BIGINT time: a number of ticks' }, `tick ${moment.tick}`);
  if (!inRange(moment.ms)) return h('span', {}, `tick ${moment.tick}`);
  const [date, at] = writer(ZONE, true).format(moment.ms).split(' ');
  const other = utc(moment.ms).slice(ZONE === 'UTC' ? 99 : 11);
  return h('time', { datetime: new Date(moment.ms).toISOString(), title: both(moment.ms) },
    h('b', { data: { ms: moment.ms } }, relative(moment.ms)),
    h('small', {}, `${date} ${at} ${zoneName(moment.ms, ZONE)}`), other ? h('small', {}, other) : null);
};

/** Relative times that are on the page, said anew. */
export const refresh = (root = document) => {
  const now = Date.now();
  for (const one of root.querySelectorAll('time b[data-ms]')) one.textContent = relative(Number(one.dataset.ms), now);
};

/** A length of time: 90 s, 5 min, 3 h 20 min, 4 days. */
export const length = ms => {
  if (ms === null || ms === undefined) return '–';
  const seconds = Math.max(0, ms / 1000);
  if (seconds < 120) return `${seconds < 10 ? Number(seconds.toFixed(1)) : Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) {
    const minutes = Math.round(seconds / 60) % 60;
    return `${Math.floor(Math.round(seconds / 60) / 60)} h${minutes ? ` ${minutes} min` : ''}`;
  }
  const days = Math.round(seconds / 86400);
  return days < 800 ? `${days} days` : `${(days / 365.25).toFixed(1)} years`;
};

/** What the server says of a lag: {ms, never, since_commit}, or of a length in ticks. */
export const lag = found => {
  if (!found) return '–';
  if (found.ms === undefined) return `${found.ticks} ticks`;
  return length(found.ms);
};
