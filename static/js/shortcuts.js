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
const isTyping = (element) => element.closest?.("input, textarea, select, [contenteditable]");

function singleKeys() {
  try {
    return localStorage.getItem("single-keys") !== "off";
  } catch {
    return true; // Storage is blocked: as it is for everyone who did not choose.
  }
}

function nameOf(event) {
  const mod = isMac ? event.metaKey : event.ctrlKey;
  if (event.altKey || (isMac ? event.ctrlKey : event.metaKey)) return "";
  if (!mod) return event.key;
  return `mod+${event.shiftKey ? "shift+" : ""}${event.key.toLowerCase()}`;
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
  const name = nameOf(event);
  const button = Object.hasOwn(BUTTONS, name) && document.querySelector(BUTTONS[name]);
  if (!button) return;
  if (!name.startsWith("mod+") && (isTyping(event.target) || !singleKeys())) return;
  event.preventDefault();
  button.click();
});

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

// The palette: typed at, walked through with arrows; Enter takes the first of what is found.
const palette = document.getElementById("palette");
if (palette) document.body.append(palette); // out of the sidebar, which is inert and away on a phone

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-open-palette]") && palette) {
    palette.showModal();
    palette.querySelector("input").select();
    palette.querySelector("input").dispatchEvent(new Event("palette:opened"));
  } else if (palette && (event.target === palette || event.target.closest("#palette a"))) {
    palette.close();
  }
});

palette?.addEventListener("keydown", (event) => {
  const stops = [palette.querySelector("input"), ...palette.querySelectorAll("a")];
  const at = stops.indexOf(document.activeElement);
  if (event.key === "Enter" && at === 0) stops[1]?.click();
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
