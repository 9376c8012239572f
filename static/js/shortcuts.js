// The keys. What each does stands in the dialog that “?” opens; each presses a button of the page, and where that is not
// there the key keeps its own meaning. None is a single letter, and “?” and “/” are for who is not typing and wants them.

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
const BUTTONS = {
  "mod+k": "[data-open-palette]",
  "mod+shift+o": "[data-new-chat]",
  "mod+b": '[data-toggle="sidebar"]',
  "mod+.": '[data-toggle="panel"]',
  "mod+/": "[data-focus-composer]",
  "?": "[data-open-shortcuts]",
  "/": "[data-open-search]",
};
const dialog = document.getElementById("shortcuts");
const BOXES = "[type=checkbox], [type=radio]"; // nothing is typed into them
const isTyping = (element) => element.closest?.(`input:not(${BOXES}), textarea, select, [contenteditable]`);

function singleKeys() {
  try {
    return localStorage.getItem("single-keys") !== "off";
  } catch {
    return true; // Storage is blocked: as it is for everyone who did not choose.
  }
}

// By what the key writes, whatever Shift has to do with that on this keyboard: “/” stands above 7 on a German one. Where it
// writes no Latin letter, as on an Arabic one, by where it lies.
function keyOf({ key, code, shiftKey }) {
  if (key.length > 1 || /[\p{ASCII}\p{Script=Latin}]/u.test(key)) return key.toLowerCase();
  const signs = { Period: ".", Slash: shiftKey ? "?" : "/" };
  return signs[code] ?? code.replace(/^Key/, "").toLowerCase();
}

function nameOf(event) {
  const mod = isMac ? event.metaKey : event.ctrlKey;
  if (event.altKey || (isMac ? event.ctrlKey : event.metaKey)) return "";
  const key = keyOf(event);
  if (!mod) return key;
  return `mod+${event.shiftKey && /^[a-z]$/.test(key) ? "shift+" : ""}${key}`;
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
  const name = nameOf(event);
  const button = name === "mod+z" ? newestUndo() : Object.hasOwn(BUTTONS, name) && document.querySelector(BUTTONS[name]);
  if (!button) return;
  const takesText = !name.startsWith("mod+") || name === "mod+z"; // in a field these keys are the field's
  if (takesText && isTyping(event.target)) return;
  if (!name.startsWith("mod+") && !singleKeys()) return;
  event.preventDefault();
  button.click();
});

// What was done last is taken back by a key, wherever its Undo stands.
const undos = new Set(); // in the order in which they came
const noteUndos = () => document.querySelectorAll("[data-undo]").forEach((each) => undos.add(each));
const newestUndo = () => [...undos].findLast((each) => each.checkVisibility({ visibilityProperty: true }));
new MutationObserver(noteUndos).observe(document.body, { childList: true, subtree: true });
noteUndos();

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-open-shortcuts]")) dialog.showModal();
  if (event.target.closest("[data-focus-composer]")) document.querySelector("[data-composer]")?.focus();
  if (event.target === dialog || event.target.closest("[data-close-dialog]")) dialog.close();
});

// From the search down into what it found, and back.
document.addEventListener("keydown", (event) => {
  const sidebar = event.target.closest?.("#sidebar");
  if (!sidebar || event.target.closest("details") || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
  const stops = [sidebar.querySelector("#chat-search"), ...sidebar.querySelectorAll("#chat-list .chat-row > a")];
  const at = stops.indexOf(event.target);
  const next = stops[at + (event.key === "ArrowDown" ? 1 : -1)];
  if (at < 0 || !next) return;
  event.preventDefault();
  next.focus();
});

// The palette: typed at, walked through with arrows; Enter takes the first of what is found for what stands there. Where
// that is still being looked up, Enter waits for it.
const palette = document.getElementById("palette");
const asked = palette?.querySelector("input");
let foundFor = null;
let isTaken = false;
if (palette) document.body.append(palette); // out of the sidebar, which is inert and away on a phone

function takeFirst() {
  isTaken = foundFor !== asked.value;
  if (!isTaken) palette.querySelector(OFFERED)?.click();
}

document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-open-palette]") || !palette) return;
  palette.showModal();
  foundFor = null;
  asked.select();
  asked.dispatchEvent(new Event("palette:opened"));
});

// It is away, and the focus back, before what was chosen does anything; what the page has a button for is pressed there.
const OFFERED = "#palette-found :is(a, button)";
const close = ({ target }) => (target === palette || target.closest(OFFERED)) && palette.close();
palette?.addEventListener("click", close, true);

document.addEventListener("click", (event) => {
  const offered = event.target.closest("#palette-found [data-press]");
  const button = offered && document.querySelector(offered.dataset.press);
  button?.focus();
  button?.click();
});

for (const changed of ["input", "close"]) {
  palette?.addEventListener(changed, () => {
    isTaken = false;
  });
}

palette?.addEventListener("htmx:afterRequest", ({ detail }) => {
  if (!detail.successful) return;
  foundFor = detail.requestConfig.parameters.q;
  if (isTaken) takeFirst();
});

palette?.addEventListener("keydown", (event) => {
  if (event.isComposing || event.keyCode === 229) return; // 229: Safari's, for the Enter that ends a composition
  const stops = [asked, ...palette.querySelectorAll(OFFERED)];
  const at = stops.indexOf(document.activeElement);
  if (event.key === "Enter" && at === 0) takeFirst();
  else if (event.key === "Escape") palette.close(); // the browser would empty the field first
  else if (event.key === "ArrowDown") stops[Math.min(at + 1, stops.length - 1)].focus();
  else if (event.key === "ArrowUp") stops[Math.max(at - 1, 0)].focus();
  else return;
  event.preventDefault();
});

if (isMac) for (const key of document.querySelectorAll("[data-mod]")) key.textContent = "⌘";
const choice = dialog.querySelector("[data-single-keys]");
choice.checked = singleKeys();
choice.addEventListener("change", () => {
  try {
    localStorage.setItem("single-keys", choice.checked ? "on" : "off");
  } catch {
    // As above.
  }
});
