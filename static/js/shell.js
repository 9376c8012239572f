// Sidebar and panel: columns that remember whether they are open, sheets on small screens, and where the focus goes.

const root = document.documentElement;
const wide = matchMedia("(min-width: 1100px)");
const panelOpenByDefault = matchMedia("(min-width: 1280px)");
const phone = matchMedia("(max-width: 699.98px)");
let returnFocusTo = null;

const WRITTEN = "textarea, input:not([type=checkbox], [type=radio])";

// The extension of idiomorph 0.7.4 takes every swap for one of whole elements, so that what is put into #toasts came with
// a #toasts of its own.
window.htmx?.defineExtension("morph", {
  isInlineSwap: (style) => style === "morph" || style === "morph:outerHTML",
  handleSwap(style, target, fragment) {
    if (!style.startsWith("morph")) return false;
    // A menu in somebody's hands stays as it is until it is closed.
    const beforeNodeMorphed = (node) => !(node instanceof Element && node.matches("details.menu[open]"));
    return Idiomorph.morph(target, fragment.children, {
      callbacks: { beforeNodeMorphed },
      morphStyle: style.split(":")[1] ?? "outerHTML",
      ignoreActiveValue: !!document.activeElement?.matches(WRITTEN), // somebody wrote on while it was on its way
    });
  },
});

// On a phone the tabs of memory are wider than the window: the open one stands in the middle, also once numbers came.
function bringTab() {
  const tab = document.querySelector("#memory-tabs [aria-current]");
  if (!tab) return;
  const [around, box] = [tab.parentElement.getBoundingClientRect(), tab.getBoundingClientRect()];
  tab.parentElement.scrollLeft += box.x + box.width / 2 - around.x - around.width / 2;
}

bringTab();
document.addEventListener("htmx:afterSettle", ({ target }) => target.id === "memory-tabs" && bringTab());

// The panel that theme.js placed, or could not: htmx, which has not looked at the page yet, is not to ask again.
async function takePanel(panel, placed) {
  panel.setAttribute("hx-trigger", "panel:missed once");
  const came = await placed;
  htmx.process(panel);
  const search = document.getElementById("panel-search");
  if (search?.value) search.form.dispatchEvent(new Event("change")); // somebody was quicker than the scripts
  htmx.trigger(panel, came ? "htmx:afterSettle" : "panel:missed");
}

// A change while the panel is on its way is newer than what it shows: it is told again once the panel listens.
let missedChange = false;
document.body.addEventListener("memories:changed", () => {
  missedChange = !document.getElementById("memory-region");
});
document.body.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target.id === "panel") missedChange = false;
});
document.body.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.id !== "panel" || !missedChange) return;
  missedChange = false;
  document.body.dispatchEvent(new CustomEvent("memories:changed"));
});

if (window.panelPlaced) takePanel(document.getElementById("panel"), window.panelPlaced);

const isOpen = (column) => {
  if (!wide.matches) return root.dataset.sheet === column;
  if (column === "sidebar") return root.dataset.sidebar !== "closed";
  return root.dataset.panel ? root.dataset.panel === "open" : panelOpenByDefault.matches;
};

function setColumn(column, open, byKey = false) {
  if (wide.matches) {
    const element = document.getElementById(column);
    const hadFocus = element.contains(document.activeElement);
    root.dataset[column] = open ? "open" : "closed";
    try {
      localStorage.setItem(column, root.dataset[column]);
    } catch {
      // Storage is blocked: it holds for this page only.
    }
    if (byKey && open !== hadFocus) moveFocus(element, open);
  } else if (open) {
    returnFocusTo = document.activeElement;
    root.dataset.sheet = column;
    focusSheet();
  } else {
    delete root.dataset.sheet;
    show(); // what the focus goes back to was inert until now
    if (returnFocusTo?.isConnected) returnFocusTo.focus();
    returnFocusTo = null;
  }
  show();
}

// A column that a key opens takes the focus, and gives it back where it had it when it is closed.
function moveFocus(column, open) {
  if (open) {
    returnFocusTo = document.activeElement;
    (column.querySelector("input[type=search]") ?? column.querySelector("button, a"))?.focus();
  } else {
    (returnFocusTo?.isConnected ? returnFocusTo : document.querySelector("[data-composer]"))?.focus();
    returnFocusTo = null;
  }
}

// What a sheet holds may come a little later: the focus goes in then.
function focusSheet() {
  const sheet = document.getElementById(root.dataset.sheet);
  if (sheet && !sheet.contains(document.activeElement)) sheet.querySelector("button, a, input")?.focus();
}

document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.elt.id === root.dataset.sheet) focusSheet();
});

// While a sheet is open the rest of the page takes neither focus nor clicks.
function show() {
  if (wide.matches) delete root.dataset.sheet;
  const sheet = root.dataset.sheet;
  document.getElementById("main").inert = Boolean(sheet);
  const sidebar = document.getElementById("sidebar");
  if (sidebar) sidebar.inert = Boolean(sheet) && sheet !== "sidebar";
  for (const button of document.querySelectorAll("[data-toggle]")) {
    button.setAttribute("aria-expanded", String(isOpen(button.dataset.toggle)));
  }
}

wide.addEventListener("change", show);
panelOpenByDefault.addEventListener("change", show);
document.addEventListener("htmx:afterSettle", show);
show();

document.addEventListener("click", (event) => {
  const toggle = event.target.closest("[data-toggle]");
  if (toggle) setColumn(toggle.dataset.toggle, !isOpen(toggle.dataset.toggle), !event.isTrusted); // pressed by shortcuts.js
  if (event.target.closest("[data-close-sheets]")) setColumn(root.dataset.sheet ?? "panel", false);
  if (event.target.closest("[data-open-panel]")) {
    setColumn("panel", true);
    event.target.closest("[data-vanish]")?.remove();
  }
  if (event.target.closest("[data-open-add]")) openAdd();
  const find = event.target.closest("[data-find]");
  if (find) findMemory(find.dataset.find);
  if (event.target.closest("[data-open-search]")) searchChats();

  const reveal = event.target.closest("[data-reveal]");
  if (reveal) {
    const target = document.querySelector(reveal.dataset.reveal);
    target.hidden = !target.hidden;
    reveal.setAttribute("aria-expanded", String(!target.hidden));
    if (!target.hidden) target.querySelector("textarea, input")?.focus();
  }
  const hide = event.target.closest("[data-hide]");
  if (hide) {
    document.querySelector(hide.dataset.hide).hidden = true;
    const opener = document.querySelector(`[data-reveal="${hide.dataset.hide}"]`);
    opener?.setAttribute("aria-expanded", "false");
    opener?.focus();
  }
  const remove = event.target.closest("[data-remove]");
  if (remove) remove.closest(remove.dataset.remove).remove();
});

// The form for a memory, as soon as the panel is there; on the Memory page also by its address.
function openAdd() {
  const button = document.querySelector('[data-reveal="#memory-add"][aria-expanded="false"]');
  if (button) button.click();
  else if (!document.getElementById("memory-add")) document.addEventListener("htmx:afterSettle", openAdd, { once: true });
}

if (new URLSearchParams(location.search).has("add")) openAdd();

function searchChats() {
  if (!isOpen("sidebar")) setColumn("sidebar", true);
  document.getElementById("chat-search")?.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || document.querySelector("dialog[open]")) return;
  const editing = event.target.closest?.("form:has([data-cancel-button])");
  const cancel = event.target.dataset?.cancel;
  if (cancel) document.querySelector(cancel)?.click();
  else if (editing) editing.querySelector("[data-cancel-button]").click();
  else if (root.dataset.sheet) setColumn(root.dataset.sheet, false);
});

// A field that was swapped in because somebody asked to edit takes the focus, with its text ready to be typed over.
document.addEventListener("htmx:afterSettle", (event) => {
  const target = event.detail.elt;
  const form = target.matches?.("[data-editing]") ? target : target.querySelector?.(":scope > [data-editing]");
  const field = form?.querySelector("textarea") ?? target.querySelector?.("[autofocus][data-cancel]");
  if (field && !field.closest("[data-focused]")) {
    field.closest("form").dataset.focused = "";
    field.focus();
    if (field.matches("input")) field.select();
    else field.setSelectionRange(field.value.length, field.value.length);
  }
});

// A search that the next one replaces, or a page that is left, is no error for the console; what failed logs its own.
htmx.logger = (_element, name, detail) => {
  if (["htmx:sendAbort", "htmx:afterRequest"].includes(name)) delete detail.error;
};

// A file that was sent, or refused, may be chosen again.
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.elt.matches("[data-reset]")) event.detail.elt.reset();
});

// A form that comes back with errors: to the first of them.
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.xhr?.status === 422) document.querySelector("[aria-invalid='true']")?.focus();
});

// The palette, and “Remembered” under a message, lead to a memory by its words: the panel opens, searched for them.
function findMemory(words) {
  setColumn("panel", true);
  const search = () => {
    const field = document.getElementById("panel-search");
    if (!field) return document.addEventListener("htmx:afterSettle", search, { once: true });
    field.value = words;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  search();
}

const wanted = new URLSearchParams(location.search).get("find");
if (wanted && document.getElementById("panel")) findMemory(wanted);

// Each filter of the panel that is set is a chip; a press takes it out.
function showFilters() {
  const form = document.getElementById("panel-filters");
  const row = form?.querySelector("[data-filters-chosen]");
  if (!row) return;
  const set = [...form.querySelectorAll("select")].filter((each) => each.value);
  const chips = [...set, ...form.querySelectorAll("input:checked")].map((field) => {
    const chip = form.querySelector("[data-filter-chip]").content.cloneNode(true).firstElementChild;
    const text = field.selectedOptions?.[0] ?? field.nextElementSibling;
    chip.querySelector(".filter-chip__name").textContent = text.textContent.trim();
    chip.addEventListener("click", () => {
      if (field.selectedOptions) field.value = "";
      else field.checked = false;
      form.querySelector(".filters__more > summary").focus();
      field.dispatchEvent(new Event("change", { bubbles: true }));
    });
    return chip;
  });
  row.replaceChildren(...chips);
}

document.addEventListener("change", (event) => event.target.form?.id === "panel-filters" && showFilters());

// A list may not be redrawn under somebody's hands: not by an answer to what was asked before, and not while a
// button in it waits for its own answer, which would come to a row that is gone.
const IN_HAND = "[data-editing], [data-history], .forgotten, .htmx-request, [data-gone]";
const FILTERS = "#panel-filters, #memory-filters";
const isList = (region) => region.matches?.("[data-steady]");
const inHand = (region) => isList(region) && region.querySelector(region.id === "chat-list" ? "[data-gone]" : IN_HAND);

let isBehind = false; // a refusal is made up for once nothing is in hand
let searchedLast = false; // since a card was taken in hand: what somebody asked for then is shown

document.addEventListener("htmx:beforeRequest", (event) => {
  const { elt } = event.detail;
  if (elt.closest("#memory-region > *, #memory-rows > *")) searchedLast = false;
  if (!inHand(elt)) return;
  event.preventDefault();
  isBehind = true;
});

for (const typed of ["input", "change"]) {
  document.addEventListener(typed, ({ target }) => (searchedLast ||= target.form?.matches(FILTERS)));
}

document.addEventListener("htmx:beforeSwap", (event) => {
  const { requestConfig, target } = event.detail;
  const asked = requestConfig.elt;
  if (!inHand(target) || (asked !== target && (!asked.matches(FILTERS) || searchedLast))) return;
  event.detail.shouldSwap = false;
  isBehind = true;
});

new MutationObserver(() => {
  if (!isBehind || [...document.querySelectorAll("[data-steady]")].some(inHand)) return;
  isBehind = false;
  for (const list of ["memories", "chats"]) document.body.dispatchEvent(new CustomEvent(`${list}:changed`));
}).observe(document.body, { childList: true, subtree: true });

// On a phone following a link in the sidebar closes it at once instead of with the next page.
document.addEventListener("click", (event) => {
  if (phone.matches && event.target.closest("#sidebar a[href]")) delete root.dataset.sheet;
});
