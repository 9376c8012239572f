// Menus, toasts, theme, copying: small behaviours of controls that every page shares.

const announce = (text) => {
  const region = document.getElementById("announce");
  if (region) region.textContent = text;
};

// A status that is put into the page is not read out for sure: what was not there before is no live region yet. It is said
// in the one that always is; notices have theirs.
new MutationObserver((changes) => {
  for (const node of changes.flatMap((change) => [...change.addedNodes])) {
    if (!(node instanceof Element) || node.closest("[aria-live]")) continue;
    const news = node.matches("[role=status]") ? node : node.querySelector("[role=status]");
    const text = news?.textContent.replace(/\s+/g, " ").trim();
    if (text) announce(text);
  }
}).observe(document.body, { childList: true, subtree: true });

// Menus are <details class="menu">: one open at a time, closed by Esc, by a choice or by a click elsewhere.

function closeMenus(except) {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (menu !== except) menu.open = false;
  }
}

document.addEventListener("click", (event) => {
  const menu = event.target.closest("details.menu");
  closeMenus(menu);
  // A label opens its field first, and a download leaves the page as it is: a new link to share stays in its menu.
  if (!menu?.open || !event.target.closest(".menu__item:not(label, summary, [download])")) return;
  menu.open = false;
  if (!event.detail) menu.querySelector("summary").focus(); // by a key: nothing in a closed menu has the focus
});

// Who leaves one by Tab goes on beneath it. A press on a label in it, which takes no focus, gives that to what is around.
document.addEventListener("focusin", ({ target, relatedTarget }) => {
  const menu = relatedTarget?.closest("details.menu[open]");
  if (menu && !target.contains(menu)) closeMenus(target.closest("details.menu"));
});

document.addEventListener("keydown", (event) => {
  const menu = event.target.closest?.("details.menu[open]") ?? document.querySelector("details.menu[open]");
  if (!menu) return;
  if (event.key === "Escape") {
    menu.open = false;
    menu.querySelector("summary").focus();
    event.stopImmediatePropagation();
  } else if (event.key === "Enter" && event.target.matches("[type=checkbox]")) {
    event.preventDefault(); // it would send the form
    event.target.click();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    if (event.target.matches("select, input, textarea")) return; // they have a use for arrows
    const all = [...menu.querySelectorAll(".menu__item")].map((each) => each.control ?? each); // a label's field
    const items = all.filter((each) => each.checkVisibility() && !each.disabled);
    if (!items.length) return;
    const step = event.key === "ArrowDown" ? 1 : -1;
    const next = items[(items.indexOf(document.activeElement) + step + items.length) % items.length];
    next?.focus();
    event.preventDefault();
  }
});

// Where a menu that opens upwards has no room above it in what scrolls, it opens downwards; a card's that would go beyond
// the edge of the screen opens to the other side.

document.addEventListener(
  "toggle",
  ({ target: menu }) => {
    const items = menu.open && menu.querySelector(":scope > .menu__items");
    if (!items) return;
    menu.classList.remove("menu--down", "menu--aside");
    const top = menu.closest(".scroll, .table-scroll, .panel__body")?.getBoundingClientRect().top ?? 0;
    const box = items.getBoundingClientRect();
    menu.classList.toggle("menu--down", box.top < top);
    menu.classList.toggle("menu--aside", box.left < 0 || box.right > innerWidth);
  },
  true,
);

// Some thirty rows of chats have a menu, and one is opened: what fits the chat is put there then, with its id.

document.addEventListener(
  "toggle",
  ({ target: menu }) => {
    if (!menu.open || !("chatMenu" in menu.dataset)) return;
    const state = menu.dataset.chatMenu.split(" ");
    const items = document.getElementById("chat-menu").content.cloneNode(true);
    for (const item of items.querySelectorAll(".menu__item")) {
      if (state.includes(item.dataset.unless) || (item.dataset.if && !state.includes(item.dataset.if))) item.remove();
      for (const name of ["href", "hx-get", "hx-post"]) {
        const address = item.getAttribute(name);
        if (address) item.setAttribute(name, address.replace("CHAT", menu.closest("li").id.slice("row-".length)));
      }
    }
    menu.querySelector(".menu__items").replaceChildren(items);
    window.htmx?.process(menu);
  },
  true,
);

// Toasts and “Forgotten” rows go by themselves, but never while somebody points at them or has focus in them.

function vanish(element) {
  if (element.matches(":hover, :focus-within") || element.closest("[data-steady]:hover")) {
    setTimeout(() => element.isConnected && vanish(element), 1500);
    return;
  }
  const later = element.querySelector(":scope > template[data-then-toast]");
  if (later) addToast(later);
  (element.closest("tr") ?? element).remove();
  if (later) document.body.dispatchEvent(new CustomEvent("memories:changed")); // the list waited for this row to go
}

// A row that somebody dealt with by a click keeps its space until the pointer leaves its list, so that the button of the
// next row does not slide under the pointer.

document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const { elt, triggeringEvent } = detail.requestConfig;
  const row = detail.target;
  if (!detail.shouldSwap || elt.getAttribute("hx-swap") !== "delete" || !row.closest("[data-steady]")) return;
  if (!triggeringEvent?.detail) return; // by a key, which follows the focus
  detail.swapOverride = "none";
  row.dataset.gone = "";
  row.inert = true;
});

document.addEventListener("pointerover", ({ target }) => {
  for (const row of document.querySelectorAll("[data-gone]")) {
    if (!row.closest("[data-steady]").contains(target)) row.remove();
  }
});

function addToast(template) {
  const toast = template.content.cloneNode(true).firstElementChild;
  document.getElementById("toasts").append(toast);
  window.htmx?.process(toast);
  return toast;
}

const phone = matchMedia("(max-width: 699.98px)");
const timed = new WeakSet();

function timeAll() {
  for (const element of document.querySelectorAll("[data-vanish]")) {
    if (timed.has(element)) continue;
    timed.add(element);
    for (const older of document.querySelectorAll(`[data-about="${element.dataset.about}"]`)) {
      if (older !== element) older.remove();
    }
    for (const older of document.querySelectorAll(".toast--error")) {
      if (older !== element && older.textContent === element.textContent) older.remove();
    }
    const { vanish: time, vanishPhone: timeOnPhone = time } = element.dataset;
    setTimeout(() => element.isConnected && vanish(element), Number(phone.matches ? timeOnPhone : time));
  }
}

new MutationObserver(timeAll).observe(document.body, { childList: true, subtree: true });
timeAll();

document.addEventListener("memoryhub:toast", (event) => {
  const toast = addToast(document.getElementById(event.detail.template));
  event.detail.prepare?.(toast);
});

document.addEventListener("click", (event) => {
  event.target.closest("[data-dismiss]")?.closest("[data-vanish], .toast")?.remove();
});

// A notice that is dismissed stays away from this browser, in every workspace.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-dismiss-notice]");
  if (!button) return;
  const known = document.cookie.match(/(?:^|; )dismissed=([\w.-]*)/)?.[1].split(".") ?? [];
  const all = [...new Set([...known, button.dataset.dismissNotice])].filter(Boolean).slice(-20).join(".");
  document.cookie = `dismissed=${all}; path=/; max-age=31536000; samesite=lax`;
  button.closest(".notice").remove();
  document.querySelector("[data-composer]")?.focus();
});

// Theme

function showTheme() {
  const choice = document.documentElement.dataset.theme ?? "system";
  for (const button of document.querySelectorAll("[data-theme-choice]")) {
    button.setAttribute("aria-pressed", String(button.dataset.themeChoice === choice));
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-theme-choice]");
  if (!button) return;
  const choice = button.dataset.themeChoice;
  if (choice === "system") {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem("theme");
  } else {
    document.documentElement.dataset.theme = choice;
    localStorage.setItem("theme", choice);
  }
  showTheme();
});

showTheme();

// Copying

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "visually-hidden";
    button.after(area); // in the menu that the button is in, which stays open
    area.select();
    document.execCommand("copy");
    area.remove();
    button.focus();
  }
  const copied = document.getElementById("texts").dataset.copied;
  const use = button.querySelector("use");
  const before = use.getAttribute("href");
  use.setAttribute("href", before.replace(/#.*/, "#check"));
  announce(copied);
  setTimeout(() => use.setAttribute("href", before.replace(/#.*/, "#copy")), 1600);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy], [data-copy-code]");
  if (!button) return;
  const text = button.dataset.copy ?? button.closest(".code-block").querySelector("pre").textContent;
  copy(text, button);
});

// What was made to be copied is, with the press that made it.
document.addEventListener("htmx:afterSettle", (event) => {
  const button = event.target.querySelector?.("[data-copy-now]");
  button?.removeAttribute("data-copy-now");
  button?.click();
});

function addCodeButtons() {
  const template = document.getElementById("code-copy");
  for (const pre of document.querySelectorAll(".prose pre:not([data-with-copy])")) {
    pre.dataset.withCopy = "";
    let block = pre.closest(".code-block");
    if (!block || block === pre) {
      block = document.createElement("div");
      block.className = "code-block";
      pre.classList.remove("code-block");
      pre.replaceWith(block);
      block.append(pre);
    }
    pre.tabIndex = 0; // long lines scroll, and the keyboard must reach that
    block.append(template.content.cloneNode(true));
  }
}

addCodeButtons();
document.addEventListener("htmx:afterSettle", addCodeButtons);

// What a <details> shows is fetched when it is opened; with data-once, until it has come. Where it did not come the
// <details> closes again, and the next press asks anew.

const isByOpening = ({ requestConfig }) => requestConfig?.triggeringEvent?.type === "toggle";

document.addEventListener("htmx:beforeRequest", (event) => {
  const { elt } = event.detail;
  if (!isByOpening(event.detail)) return;
  if (!elt.closest("details").open || elt.dataset.once === "came") event.preventDefault();
});

document.addEventListener("htmx:afterOnLoad", ({ detail }) => {
  if (isByOpening(detail) && detail.xhr.status < 400 && "once" in detail.elt.dataset) detail.elt.dataset.once = "came";
});

for (const failed of ["htmx:sendError", "htmx:responseError"]) {
  document.addEventListener(failed, ({ detail }) => {
    if (isByOpening(detail)) detail.elt.closest("details").open = false;
  });
}

// A text that is too long is refused whole, and says by how much, rather than cut where somebody pastes it.
document.addEventListener("beforeinput", ({ target }) => {
  if (target.matches?.("textarea[maxlength]")) target.removeAttribute("maxlength");
});

// An error about what was sent does not stay beside what is typed instead.
document.addEventListener("input", ({ target }) => {
  const field = target.closest?.(".field--error");
  if (!field) return;
  field.classList.remove("field--error");
  target.removeAttribute("aria-invalid");
  for (const error of field.querySelectorAll(".field__error")) error.remove();
});

// What htmx cannot know: the network is gone, or the session is.

document.addEventListener("htmx:sendError", (event) => {
  if (event.defaultPrevented || event.detail.elt.closest(".composer")) return;
  document.dispatchEvent(new CustomEvent("memoryhub:toast", { detail: { template: "toast-network" } }));
});

document.addEventListener("htmx:beforeSwap", (event) => {
  const { responseURL, status, responseText } = event.detail.xhr;
  const isStale = status === 403 && /^\s*<!doctype/i.test(responseText); // signed in anew meanwhile, in another tab
  if (responseURL.includes("/accounts/login/") || isStale) {
    event.detail.shouldSwap = false;
    keepUnsent(event.detail.elt);
    location.reload(); // the login page leads back here
  }
});

// The text of an artifact or a document that was edited and not saved is not left without a question.

const hasUnsaved = (place) =>
  [...place.querySelectorAll("form[data-unsaved]")].some(
    (form) =>
      form.dataset.unsaved === "sent" || [...form.querySelectorAll("textarea")].some((area) => area.value !== area.defaultValue),
  );

// htmx replaces its forms when they are saved.
document.addEventListener("submit", ({ target }) => target.matches("[hx-post]") || target.removeAttribute("data-unsaved"));
addEventListener("beforeunload", (event) => hasUnsaved(document) && event.preventDefault());
document.addEventListener("htmx:confirm", (event) => {
  const { target, triggeringEvent } = event.detail;
  if (triggeringEvent?.type !== "click" || !target || !hasUnsaved(target)) return;
  if (!confirm(document.getElementById("texts").dataset.leave)) event.preventDefault();
});

// What was typed in another form than the composer, which keeps its own drafts, is shown after signing in again.

const unsentKey = `unsent:${document.body.dataset.person}`;

function keepUnsent(element) {
  const areas = element.closest("form:not(#composer)")?.querySelectorAll("textarea") ?? [];
  const typed = [...areas].map((area) => area.value.trim()).filter(Boolean);
  try {
    if (typed.length) sessionStorage.setItem(unsentKey, typed.join("\n\n"));
  } catch {
    // Storage is blocked: nothing can be kept.
  }
}

function showUnsent() {
  let typed = null;
  try {
    typed = sessionStorage.getItem(unsentKey);
  } catch {
    // As above.
  }
  if (!typed) return;
  const prepare = (toast) => {
    toast.querySelector("[data-unsent-text]").textContent = typed;
    toast.querySelector("[data-copy]").dataset.copy = typed;
    toast.querySelector("[data-dismiss]").addEventListener("click", () => sessionStorage.removeItem(unsentKey));
  };
  document.dispatchEvent(new CustomEvent("memoryhub:toast", { detail: { template: "toast-unsent", prepare } }));
}

showUnsent();
