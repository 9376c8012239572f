// What happens elsewhere: saved memories, changed chats. One stream a browser and workspace, shared by its tabs:
// the tab that holds the lock listens and tells the others. When it closes the next one takes over.

const { workspace, events: url } = document.body.dataset;
const NAMES = ["x_memory.auto_saved", "memory.changed", "chat.changed", "members.changed", "work.done", "resync", "closed"];
let answeredAt = -Infinity;
let looking;

const dispatch = (name) => document.body.dispatchEvent(new CustomEvent(name));
const currentChat = () => document.getElementById("conversation")?.dataset.chat;

// Cards of what was just saved glow once, however long ago the model that took its time began.
const fresh = new Set();

document.addEventListener("htmx:afterSwap", (event) => {
  if (!event.target.closest?.("#panel")) return;
  for (const id of fresh) {
    const card = document.getElementById(id);
    if (card) fresh.delete(id);
    card?.classList.add("memory--new");
  }
});

function autoSaved({ chat_id: chatId, source_type: source, memory_ids: ids, count }) {
  for (const id of ids) fresh.add(id);
  dispatch("memories:changed");
  if (chatId !== currentChat()) return saved(count, "elsewhere");
  // What a tool saved in this chat has a line on its answer already, with Undo.
  if (source !== "model" || !document.querySelector("[data-stream]")) saved(count);
  dispatch("transcript:changed"); // “saved 1” under the answer
}

function saved(count, where = "text") {
  document.dispatchEvent(
    new CustomEvent("memoryhub:toast", {
      detail: {
        template: "toast-saved",
        prepare(toast) {
          const text = toast.querySelector(".toast__text");
          text.textContent = text.dataset[where].replace("{count}", count); // last, so that no language needs a plural
        },
      },
    }),
  );
}

function chatChanged({ chat_id: chatId }) {
  dispatch("chats:changed");
  if (chatId !== currentChat() || document.querySelector("[data-stream]")) return;
  // What was just answered here is here already; what somebody else says at that moment is fetched a little later.
  const wait = Math.max(0, answeredAt + 3000 - performance.now());
  clearTimeout(looking);
  looking = setTimeout(() => dispatch("transcript:changed"), wait);
}

// No longer a member, or signed out: the server says which. Not where a form that was just sent brings the next page, as
// after deleting the workspace itself.
let leftAt = -Infinity;
addEventListener("beforeunload", () => (leftAt = performance.now()));

function closed() {
  if (performance.now() - leftAt > 10_000) location.reload();
}

function hear(name, data) {
  if (name === "x_memory.auto_saved") autoSaved(data);
  else if (name === "memory.changed") dispatch("memories:changed");
  else if (name === "chat.changed") chatChanged(data);
  else if (name === "members.changed") dispatch("members:changed");
  else if (name === "closed") closed();
  else {
    dispatch("memories:changed");
    dispatch("chats:changed");
    dispatch("members:changed");
    dispatch("transcript:changed");
  }
}

document.addEventListener("memoryhub:answered", () => {
  answeredAt = performance.now();
});

// A conversation is not redrawn while an answer grows in it, nor over an open receipt or earlier messages; and
// “Remembered · Undo” stays for its eight seconds.
const UNDO_TIME = 8000;
let confirmedAt = -Infinity;

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.requestConfig?.path.includes("/remember/")) confirmedAt = performance.now();
});

// Also while a button in it waits for its own answer, which would come to a message that is gone.
const IN_USE =
  "#messages .htmx-request, [data-stream], .receipt[open], .versions[open], #messages [data-editing], [data-earlier], " +
  ".call:not(.call--differs) > .call__more[open]";

function leaveAlone() {
  const left = confirmedAt + UNDO_TIME - performance.now();
  const waiting = document.querySelector("#messages .htmx-request");
  if (left > 0 || waiting) setTimeout(() => dispatch("transcript:changed"), Math.max(left, 1000));
  return left > 0 || document.querySelector(IN_USE);
}

let isBehind = false; // a redraw that was refused is made up for once the conversation is left alone

document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.detail.elt.id !== "messages" || !leaveAlone()) return;
  event.preventDefault();
  isBehind = true;
});

function catchUp() {
  if (!isBehind || document.querySelector(IN_USE)) return;
  isBehind = false;
  dispatch("transcript:changed");
}

for (const name of ["memoryhub:answered", "htmx:afterSettle", "toggle"]) document.addEventListener(name, catchUp, true);

document.addEventListener("htmx:beforeSwap", (event) => {
  const text = event.detail.target; // a better proposal does not replace what was typed meanwhile
  if (text.localName === "textarea" && text.value !== text.defaultValue) event.detail.shouldSwap = false;
  const asked = event.detail.requestConfig.elt;
  if (asked.id !== "messages" || asked !== event.detail.target || !leaveAlone()) return;
  event.detail.shouldSwap = false;
  isBehind = true;
});

function listen(share) {
  const source = new EventSource(url);
  let lost = false;
  for (const name of NAMES) {
    source.addEventListener(name, (event) => {
      const data = JSON.parse(event.data);
      // One tab is enough to notify somebody.
      if (name === "work.done") return document.dispatchEvent(new CustomEvent("memoryhub:done", { detail: data }));
      hear(name, data);
      share?.postMessage([name, data]);
      if (name === "closed") source.close();
    });
  }
  source.addEventListener("error", () => {
    lost = true;
  });
  source.addEventListener("open", () => {
    if (!lost) return;
    lost = false;
    hear("resync", {});
    share?.postMessage(["resync", {}]);
  });
}

if (url && navigator.locks && window.BroadcastChannel) {
  const channel = new BroadcastChannel(`memoryhub:${workspace}`);
  channel.addEventListener("message", (event) => hear(...event.data));
  navigator.locks.request(`memoryhub:${workspace}`, () => {
    listen(channel);
    return new Promise(() => {}); // held until the tab closes
  });
} else if (url) {
  listen(null); // no locks outside of https and localhost
}
