// Runs before the first paint: theme and open columns are on <html> before anything is drawn, so nothing jumps.
(() => {
  const root = document.documentElement;
  try {
    const theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    for (const column of ["sidebar", "panel"]) {
      const state = localStorage.getItem(column);
      if (state === "open" || state === "closed") root.dataset[column] = state;
    }
  } catch {
    // Storage is blocked: the system's theme and the default columns are fine.
  }

  // The memories are asked for at once where their column is open: they need not wait for the other scripts (shell.js).
  const { panel } = document.currentScript.dataset;
  const isOpen = root.dataset.panel ? root.dataset.panel === "open" : matchMedia("(min-width: 1280px)").matches;
  if (panel && isOpen && matchMedia("(min-width: 1100px)").matches) {
    const asked = fetch(panel, { headers: { "HX-Request": "true" } });
    window.askedPanel = asked.then((answer) => (answer.ok && !answer.redirected ? answer.text() : "")).catch(() => "");
  }
})();
