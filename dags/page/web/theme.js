// Light or dark as Airflow's UI has it: it keeps the choice under "theme" (light, dark, system). Before anything is drawn.
(() => {
  const system = matchMedia('(prefers-color-scheme: dark)');
  const apply = () => {
    let chosen = null;
    try { chosen = localStorage.getItem('theme'); } catch { /* storage is closed to this frame */ }
    const dark = chosen === 'dark' || (chosen !== 'light' && system.matches);
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  };
  apply();
  system.addEventListener('change', apply);
  addEventListener('storage', event => { if (event.key === 'theme' || event.key === null) apply(); });
})();
