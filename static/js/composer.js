// The composer: grows with its text, sends with Enter, and never loses what was typed.

const form = () => document.getElementById("composer");
const field = () => form()?.querySelector("[data-composer]");
const canGrowByItself = CSS.supports("field-sizing", "content");

function grow() {
  const area = field();
  if (!area || canGrowByItself) return;
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight}px`;
}

// Text that was not sent survives a reload or a crash of the tab, each chat's its own, and nobody else's in the same tab.
const draftKey = () => {
  const { person, workspace } = document.body.dataset;
  return `draft:${person}:${document.getElementById("conversation")?.dataset.chat ?? workspace}`;
};

function keepDraft() {
  try {
    const text = field()?.value;
    if (text) sessionStorage.setItem(draftKey(), text);
    else sessionStorage.removeItem(draftKey());
  } catch {
    // Storage is blocked: the field itself still holds the text.
  }
}

function restoreDraft() {
  const area = field();
  if (!area || area.value) return;
  try {
    area.value = sessionStorage.getItem(draftKey()) ?? "";
  } catch {
    // As above.
  }
  grow();
}

document.addEventListener("input", (event) => {
  if (event.target !== field()) return;
  form().querySelector("[data-unsent]").hidden = true;
  grow();
  keepDraft();
});

document.addEventListener("keydown", (event) => {
  if (event.isComposing || event.keyCode === 229) return; // 229: Safari's, for the Enter that ends a composition
  const sends = event.key === "Enter" && !event.shiftKey && !event.altKey;
  if (sends && event.target.matches?.("[data-enter-sends]")) {
    event.preventDefault();
    event.target.form.requestSubmit();
  } else if (event.target !== field()) {
    return;
  } else if (sends) {
    event.preventDefault();
    send();
  } else if (event.key === "Escape" && form().hasAttribute("data-waits")) {
    queue(false);
  } else if (event.key === "ArrowUp" && !event.target.value && !form().dataset.streaming) {
    const last = [...document.querySelectorAll("#messages > .message [data-edit-message]")].at(-1);
    if (!last) return;
    event.preventDefault();
    last.click();
  }
});

function send() {
  if (!field().value.trim()) return;
  if (form().dataset.streaming) queue(true);
  else form().requestSubmit();
}

// What is sent while an answer is being written waits for its end, and says so; Esc or its button takes that back.
function queue(waits) {
  form().toggleAttribute("data-waits", waits);
  form().querySelector("[data-queued]").hidden = !waits;
}

document.addEventListener("memoryhub:answered", () => {
  if (!form()?.hasAttribute("data-waits") || form().dataset.streaming) return;
  queue(false);
  send();
});

document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-unqueue]")) return;
  queue(false);
  field().focus();
});

document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.detail.elt !== form()) return;
  if (form().dataset.streaming || !field().value.trim()) event.preventDefault();
  else {
    form().querySelector("[data-unsent]").hidden = true;
    form().dataset.draft = draftKey(); // a first message has another address when it is answered
    keepMode(null);
  }
});

document.addEventListener("htmx:afterRequest", (event) => {
  const asked = event.detail.requestConfig.elt; // the answer to a first message takes the place of the form that sent it
  if (asked.id !== "composer" || !event.detail.successful) return;
  if (event.detail.xhr.responseURL.includes("/accounts/login/")) return; // signed out meanwhile: nothing was sent
  try {
    sessionStorage.removeItem(asked.dataset.draft);
  } catch {
    // As above.
  }
  const area = asked.querySelector("[data-composer]");
  area.value = "";
  grow();
  field()?.focus();
});

document.addEventListener("htmx:sendError", (event) => {
  if (event.detail.elt !== form()) return;
  form().querySelector("[data-unsent]").hidden = false;
  field().focus();
});

document.addEventListener("click", (event) => {
  const prompt = event.target.closest("[data-prompt]");
  if (!prompt) return;
  field().value = prompt.dataset.prompt;
  grow();
  keepDraft();
  field().focus();
});

// The question about memory goes with its answer: on to the message, but not with a keyboard over half a phone.
document.addEventListener("memory:answered", () => {
  if (!matchMedia("(pointer: coarse)").matches) field()?.focus();
});

// What is chosen behind “+” or in the chat's menu and is not as usual is a chip over the text; a press takes it out.
const modes = () => [...(form()?.querySelectorAll("[name=mode]") ?? [])];

// A mode that was turned off, or on, in a chat stays so until the next message, whatever the last answer was made in.
const modeKey = () => draftKey().replace("draft", "mode");

function keepMode(mode) {
  try {
    if (mode === null) sessionStorage.removeItem(modeKey());
    else sessionStorage.setItem(modeKey(), mode);
  } catch {
    // As above.
  }
}

function restoreMode() {
  let kept = null;
  try {
    kept = sessionStorage.getItem(modeKey());
  } catch {
    // As above.
  }
  if (kept !== null) for (const box of modes()) box.checked = box.value === kept;
  sayChosen();
}

function sayChosen() {
  const line = form()?.querySelector("[data-chosen]");
  if (!line) return;
  const selects = [...form().elements].filter((each) => each.matches("select") && each.selectedIndex > 0);
  const boxes = [...form().querySelectorAll(".composer__more input:checked")];
  const chips = [...boxes, ...selects].map((field) => {
    const chip = form().querySelector("[data-chosen-chip]").content.cloneNode(true).firstElementChild;
    const words = field.selectedOptions?.[0].textContent ?? field.parentElement.querySelector("[data-chosen-as]").dataset.chosenAs;
    chip.querySelector(".filter-chip__name").textContent = words.trim();
    chip.addEventListener("click", () => {
      if (field.selectedOptions) field.value = "";
      else field.checked = false;
      field.dispatchEvent(new Event("change", { bubbles: true }));
      document.querySelector("[data-composer]")?.focus();
    });
    return chip;
  });
  line.replaceChildren(...chips);
  for (const button of form().querySelectorAll("[data-quick]")) {
    const box = modes().find((each) => each.value === button.dataset.quick);
    button.hidden = !box || box.checked;
  }
}

document.addEventListener("change", ({ target }) => {
  if (!target.form || target.form !== form()) return;
  if (target.name === "mode" && document.getElementById("conversation").dataset.chat)
    keepMode(target.checked ? target.value : "");
  if (target.name === "mode" && target.checked) {
    for (const other of modes()) other.checked = other === target; // an answer is made in one way
    target.closest("details").open = false;
    field().focus();
  }
  sayChosen();
});

document.addEventListener("click", (event) => {
  const quick = event.target.closest("[data-quick]");
  if (!quick) return;
  modes().find((each) => each.value === quick.dataset.quick)?.click();
});

document.addEventListener("htmx:afterSettle", ({ target }) => (target.id === "mode-choice" ? restoreMode() : sayChosen()));

document.addEventListener("memoryhub:chat-opened", restoreDraft);
document.addEventListener("memoryhub:chat-opened", restoreMode);
restoreDraft();
restoreMode();
grow();
