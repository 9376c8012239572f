// Follows answers while they are written. The server renders what there is of them; here only what differs is changed,
// and when an answer is whole the message with all its buttons takes its place, its text unmoved.
// A dropped connection begins anew with all that was said so far, which changes nothing on the screen.

const scroller = () => document.getElementById("scroller");
const jump = () => document.querySelector("[data-jump]");
const texts = document.getElementById("texts").dataset;
const NEAR = 80; // pixels from the end that still count as being there
const open = new Map();
let stuck = true;

// Staying at the end, unless somebody scrolled up to read.

function toEnd() {
  const box = scroller();
  if (box) box.scrollTop = box.scrollHeight;
}

function follow() {
  if (stuck) toEnd();
  showJump();
}

const isAtEnd = (box) => box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;

// Only where something lies below: a page that is all visible has nothing to jump to.
function showJump() {
  const button = jump();
  const box = scroller();
  if (button) button.hidden = stuck || !box || isAtEnd(box);
}

document.addEventListener(
  "scroll",
  (event) => {
    if (event.target.id !== "scroller") return;
    const box = event.target;
    stuck = isAtEnd(box);
    showJump();
  },
  true,
);

document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-jump]")) return;
  stuck = true;
  follow();
});

// Streams

const composer = () => document.getElementById("composer");

function showBusy() {
  const streaming = [...open.values()].find((stream) => stream.element.isConnected);
  const form = composer();
  if (!form) return;
  if (streaming) form.dataset.streaming = streaming.element.dataset.stop;
  else delete form.dataset.streaming;
}

function begin(element) {
  if (open.has(element.id)) {
    if (open.get(element.id).element === element) return;
    open.get(element.id).source.close();
  }
  const live = element.querySelector("[data-live]");
  const source = new EventSource(element.dataset.stream);
  open.set(element.id, { element, source });
  let failures = 0;

  let grown = ""; // the HTML so far; the server says how much of it still holds
  source.addEventListener("html", (event) => {
    failures = 0;
    const { keep, html } = JSON.parse(event.data);
    grown = grown.slice(0, keep) + html;
    Idiomorph.morph(live, grown, { morphStyle: "innerHTML" });
    follow();
  });
  source.addEventListener("tool", (event) => {
    showCall(element, JSON.parse(event.data));
    follow();
  });
  source.addEventListener("step", (event) => {
    const step = JSON.parse(event.data);
    showCall(element, step, step.kind === "check" ? "[data-checks]" : "[data-calls]");
    follow();
  });
  source.addEventListener("restart", () => {
    grown = "";
    live.replaceChildren();
    for (const list of element.querySelectorAll("[data-calls], [data-checks]")) list.replaceChildren();
  });
  source.addEventListener("done", () => finish(element, texts.answerReady));
  source.addEventListener("error", (event) => {
    if (event.data) {
      finish(element, texts.answerFailed);
    } else if (source.readyState === EventSource.CLOSED) {
      // Refused rather than dropped: the stored answer says what became of it.
      failures += 1;
      setTimeout(() => finish(element, ""), Math.min(8000, 500 * 2 ** failures));
    }
  });
  document.getElementById("announce").textContent = texts.answering;
  showBusy();
}

// What the model has done meanwhile, a line each; with the answer's end the server's own lines take their place.
function showCall(element, call, where = "[data-calls]") {
  const list = element.querySelector(where);
  if (!list) return;
  let line = document.getElementById(call.id);
  if (!line) {
    line = Object.assign(document.createElement("li"), { id: call.id, className: "call" });
    list.append(line);
  }
  const text = Object.assign(document.createElement("span"), { className: "call__line", textContent: call.text });
  text.dataset.status = call.status;
  line.replaceChildren(call.plan ? opening(text, call.plan) : text);
}

// A plan can be read while the answer is written after it.
function opening(text, plan) {
  const more = Object.assign(document.createElement("details"), { className: "call__more" });
  const summary = document.createElement("summary");
  summary.append(text);
  const body = Object.assign(document.createElement("div"), { className: "call__body" });
  body.append(Object.assign(document.createElement("p"), { className: "call__lines", textContent: plan }));
  more.append(summary, body);
  return more;
}

async function finish(element, announcement) {
  const stream = open.get(element.id);
  if (stream?.element !== element) return;
  stream.source.close();
  const announce = () => document.dispatchEvent(new CustomEvent("memoryhub:answered"));
  announce();
  if (element.isConnected) {
    await htmx.ajax("GET", element.dataset.fragment, { target: element, swap: "outerHTML" }).catch(() => {});
  }
  open.delete(element.id);
  const shown = document.getElementById(element.id);
  if (announcement && shown) {
    const text = shown.querySelector(".prose")?.textContent.trim().slice(0, 1500) ?? "";
    document.getElementById("announce").textContent = `${announcement} ${text}`;
  }
  showBusy();
  follow();
  focusComposer();
  announce();
}

// Ready for the next message, where nobody is at work elsewhere; on a touch screen the keyboard would jump up.
function focusComposer() {
  const free = [document.body, document.querySelector("[data-stop-answer]")].includes(document.activeElement);
  if (free && matchMedia("(hover: hover)").matches) {
    composer()?.querySelector("textarea")?.focus({ preventScroll: true });
  }
}

function beginAll() {
  for (const element of document.querySelectorAll("[data-stream]")) begin(element);
  showBusy();
}

document.addEventListener("htmx:afterSettle", beginAll);

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-stop-answer]");
  if (!button) return;
  htmx.ajax("POST", composer().dataset.streaming, { source: button, swap: "none" });
});

// A message just sent is read from its beginning to end: go there whatever was on screen.
document.addEventListener("htmx:afterSwap", (event) => {
  if (!event.detail.requestConfig?.elt?.matches?.("#composer, [data-sends]")) return;
  stuck = true;
  follow();
});

// Pages arrive at their end, or at the message named in the address; where nothing was said yet, at their beginning.
function arrive() {
  const named = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  if (named) {
    named.scrollIntoView({ block: "center" });
    named.classList.add("message--flash");
    stuck = false;
  } else if (document.querySelector(".message")) {
    toEnd();
  }
  showJump();
  beginAll();
}

// A message of an earlier version is there a little later than the page.
document.addEventListener("htmx:afterSettle", (event) => {
  const named = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  if (named && event.detail.elt.matches?.(".versions__body") && event.detail.elt.contains(named)) arrive();
});

document.addEventListener("memoryhub:chat-opened", () => {
  for (const [id, { element, source }] of open) {
    if (element.isConnected) continue;
    source.close();
    open.delete(id);
  }
  stuck = true;
  arrive();
});
addEventListener("hashchange", arrive);
addEventListener("pagehide", () => open.forEach(({ source }) => source.close()));
addEventListener("pageshow", (event) => event.persisted && location.reload());
if (document.readyState === "complete") arrive();
else addEventListener("load", arrive);
