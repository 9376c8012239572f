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
})();
