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

  // In whose hours the server says times, from the next page on.
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  if (timeZone && !document.cookie.split("; ").includes(`zone=${timeZone}`)) {
    document.cookie = `zone=${timeZone}; path=/; max-age=31536000; samesite=lax`;
  }

  // The browser's own bar goes with the page.
  const paintBar = () => {
    for (const meta of document.querySelectorAll("[data-theme-color]")) {
      const { themeColor: own } = meta.dataset;
      meta.media = root.dataset.theme ? (root.dataset.theme === own ? "all" : "not all") : `(prefers-color-scheme: ${own})`;
    }
  };
  paintBar();
  new MutationObserver(paintBar).observe(root, { attributeFilter: ["data-theme"] });

  // The memories are asked for at once where their column is open, and stand in it as soon as there is a column: neither
  // waits for the other scripts. Of these shell.js does the rest; it is told whether they came.
  const { panel } = document.currentScript.dataset;
  const isOpen = root.dataset.panel ? root.dataset.panel === "open" : matchMedia("(min-width: 1280px)").matches;
  if (!panel || !isOpen || !matchMedia("(min-width: 1100px)").matches) return;
  const parsed = new Promise((done) => {
    document.addEventListener("readystatechange", done, { once: true });
  });
  const place = async () => {
    const answer = await fetch(panel, { headers: { "HX-Request": "true" } });
    if (!answer.ok || answer.redirected) return false;
    const html = await answer.text();
    await parsed;
    document.getElementById("panel").innerHTML = html;
    return true;
  };
  window.panelPlaced = place().catch(() => false);
})();
