// Saved prompts: “/” in an empty message offers them, and the blanks of a chosen one are asked for before it is put in.

const dialog = document.getElementById("prompt-blanks");
const offered = () => document.getElementById("prompts-offered"); // a first message brings another
const field = () => document.querySelector("[data-composer]");
const composes = (event) => event.isComposing || event.keyCode === 229; // 229: Safari's, for the Enter that ends it
const VARIABLE = /{{[ \t]*([^{}\n]{1,40}?)[ \t]*}}/g; // as saved_prompts.py reads them
const typed = () => field()?.value ?? "";
let chosen = "";
let foundFor = null; // what was typed when what is offered was looked up
let isTaken = false; // Enter was pressed before that was known

function offer() {
  const wanted = /^\/[^\n]{0,80}$/.test(typed());
  if (!offered() || (!wanted && offered().hidden)) return;
  offered().hidden = !wanted;
  if (!wanted) return;
  document.getElementById("prompts-query").value = typed().slice(1);
  foundFor = null;
  offered().dispatchEvent(new Event("prompts:wanted"));
}

function put(text) {
  const area = field();
  offered().hidden = true;
  area.value = text;
  area.dispatchEvent(new InputEvent("input", { bubbles: true, inputType: "insertReplacementText" }));
  area.focus();
}

function choose(button) {
  chosen = button.dataset.savedPrompt;
  const names = [...new Set([...chosen.matchAll(VARIABLE)].map((match) => match[1]).filter((name) => name.trim()))];
  if (!names.length) return put(chosen);
  const blanks = names.map((name, at) => {
    const blank = dialog.querySelector("template").content.cloneNode(true).firstElementChild;
    const area = blank.querySelector("textarea");
    blank.querySelector("label").textContent = name;
    area.name = name;
    area.id = blank.querySelector("label").htmlFor = `prompt-blank-${at}`;
    return blank;
  });
  dialog.querySelector("[data-title]").textContent = button.dataset.name;
  dialog.querySelector("[data-blanks]").replaceChildren(...blanks);
  offered().hidden = true;
  dialog.showModal();
  blanks[0].querySelector("textarea").focus();
}

// Of what is offered the first; where nothing is, it was a message.
function takeFirst() {
  isTaken = foundFor !== typed().slice(1);
  if (isTaken) return;
  const first = offered().querySelector("[data-saved-prompt]");
  offered().hidden = true;
  if (first) choose(first);
  else field().form.requestSubmit();
}

document.addEventListener("input", (event) => {
  if (event.target !== field()) return;
  isTaken = false;
  if (event.inputType !== "insertReplacementText") offer();
});

document.addEventListener("htmx:afterRequest", ({ detail }) => {
  if (detail.elt !== offered()) return;
  const { q } = detail.requestConfig.parameters;
  if (q !== typed().slice(1)) return;
  if (!detail.successful) offered().querySelector("[data-found]").replaceChildren();
  foundFor = q;
  if (isTaken) takeFirst();
});

document.addEventListener("click", (event) => {
  const prompt = event.target.closest("[data-saved-prompt]");
  if (prompt) choose(prompt);
  else if (event.target.closest("[data-offer-prompts]")) {
    if (!field().value) field().value = "/";
    field().focus();
    offer();
  } else if (event.target === dialog || event.target.closest("[data-close-blanks]")) dialog.close();
  else if (offered() && !event.target.closest("#prompts-offered, [data-composer]")) offered().hidden = true;
});

dialog?.addEventListener("submit", () => {
  const values = new Map([...dialog.querySelectorAll("textarea")].map((area) => [area.name, area.value]));
  put(chosen.replace(VARIABLE, (whole, name) => values.get(name) ?? whole));
});

dialog?.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || composes(event) || !event.target.matches("textarea")) return;
  event.preventDefault();
  dialog.querySelector("form").requestSubmit();
});

// Before the message's own keys: Enter takes the first that is offered, arrows walk, Escape puts them away.
document.addEventListener(
  "keydown",
  (event) => {
    const isHere = offered() && !offered().hidden && event.target.closest("[data-composer], #prompts-offered");
    if (!isHere || composes(event)) return;
    const stops = [...offered().querySelectorAll("button, a")];
    const at = stops.indexOf(document.activeElement);
    if (event.key === "Enter" && at < 0 && !event.shiftKey) takeFirst();
    else if (event.key === "ArrowDown") stops[Math.min(at + 1, stops.length - 1)]?.focus();
    else if (event.key === "ArrowUp") (at > 0 ? stops[at - 1] : field()).focus();
    else if (event.key === "Escape") {
      offered().hidden = true;
      field().focus();
    } else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  },
  true,
);
