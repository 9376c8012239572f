// Voice by the browser's own means: dictating a message, and hearing an answer. Where there is none, nothing is offered.

const Recognition = window.SpeechRecognition ?? window.webkitSpeechRecognition;
const consent = document.getElementById("voice-consent");
const field = () => document.querySelector("[data-composer]");
let listening = null;

function agreed(say) {
  try {
    if (say) localStorage.setItem("voice", "agreed");
    return localStorage.getItem("voice") === "agreed";
  } catch {
    return Boolean(say);
  }
}

function show() {
  for (const button of document.querySelectorAll("[data-dictate]")) button.hidden = !Recognition || !consent;
  for (const button of document.querySelectorAll("[data-dictation-stop]")) button.hidden = !listening;
}

function listen() {
  const area = field();
  const before = area.value ? `${area.value.trimEnd()} ` : "";
  listening = new Recognition();
  // In the page's language, as it is spoken where the browser is from.
  const language = document.documentElement.lang.slice(0, 2);
  listening.lang = navigator.languages.find((each) => each.startsWith(language)) ?? language;
  listening.interimResults = true;
  listening.continuous = true;
  listening.onresult = (event) => {
    area.value = before + [...event.results].map((result) => result[0].transcript).join("");
    area.dispatchEvent(new InputEvent("input", { bubbles: true, inputType: "insertReplacementText" }));
  };
  listening.onend = () => {
    listening = null;
    show();
    area.focus();
  };
  listening.start();
  show();
  document.querySelector("[data-dictation-stop]")?.focus();
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-dictate]")) {
    if (agreed()) listen();
    else consent.showModal();
  }
  if (event.target.closest("[data-dictation-stop]")) listening?.stop();
  if (event.target.closest("[data-voice-no]") || event.target === consent) consent.close();
});
consent?.addEventListener("submit", () => {
  agreed(true);
  listen();
});
document.addEventListener("htmx:afterSettle", show);
show();

// Reading aloud, by voices that live on this device: what an answer says goes to nobody.
const voices = () => window.speechSynthesis?.getVoices().filter((voice) => voice.localService) ?? [];

function offerReading() {
  const button = document.getElementById("read-aloud")?.content;
  if (!button || !voices().length) return;
  for (const actions of document.querySelectorAll(".message--assistant .actions:not(:has([data-read-aloud]))")) {
    actions.append(button.cloneNode(true));
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-read-aloud]");
  if (!button) return;
  const wasReading = button.getAttribute("aria-pressed") === "true";
  speechSynthesis.cancel();
  if (wasReading) return;
  const text = button.closest(".message").querySelector(".prose")?.innerText ?? "";
  const spoken = new SpeechSynthesisUtterance(text);
  const language = document.documentElement.lang.slice(0, 2);
  spoken.voice = voices().find((voice) => voice.lang.startsWith(language)) ?? voices()[0];
  spoken.onend = spoken.onerror = () => button.setAttribute("aria-pressed", "false");
  button.setAttribute("aria-pressed", "true");
  speechSynthesis.speak(spoken);
});

window.speechSynthesis?.addEventListener("voiceschanged", offerReading);
document.addEventListener("htmx:afterSettle", offerReading);
offerReading();

document.addEventListener("memoryhub:chat-opened", () => {
  listening?.abort();
  window.speechSynthesis?.cancel();
});
