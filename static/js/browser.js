// What the browser lends: being installed, and a notification when something long is done while nobody looks.

const LONG = 10_000; // milliseconds
const worker = navigator.serviceWorker;
const can = Boolean(worker && window.Notification);
// It fetches what the page offline needs: not while this page is drawn. Without one, all else works as before.
addEventListener("load", () => setTimeout(() => worker?.register("/service-worker.js").catch(() => {}), 2_000));

function wanted() {
  try {
    return can && Notification.permission === "granted" && localStorage.getItem("notify") === "on";
  } catch {
    return false;
  }
}

// Never what was said: a notification stands on locked screens.
async function tell(kind) {
  if (!wanted() || !document.hidden) return;
  const texts = document.getElementById("texts").dataset;
  const title = kind === "run" ? texts.runDone : texts.answerDone;
  const registration = await worker.ready;
  registration.showNotification(title, { tag: location.pathname, icon: texts.icon, data: { url: location.href } });
}

// An answer is written while the composer says so, a run while its page asks for news.
const working = () => {
  if (document.querySelector("form[data-streaming]")) return "answer";
  return document.querySelector("#run-live[hx-trigger]") ? "run" : "";
};
let doing = working();
let since = Date.now();

new MutationObserver(() => {
  const now = working();
  if (now === doing) return;
  if (doing && !now && Date.now() - since >= LONG) tell(doing);
  [doing, since] = [now, Date.now()];
}).observe(document.body, { subtree: true, childList: true, attributeFilter: ["data-streaming", "hx-trigger"] });

// The switch, on the profile. Asking for leave needs a press of it.
const choice = document.querySelector("[data-notify]");
if (choice && can) {
  choice.closest("[hidden]")?.removeAttribute("hidden");
  choice.checked = wanted();
  choice.addEventListener("change", async () => {
    const granted = choice.checked && (await Notification.requestPermission()) === "granted";
    document.querySelector("[data-notify-refused]").hidden = granted || !choice.checked;
    choice.checked = granted;
    try {
      localStorage.setItem("notify", granted ? "on" : "off");
    } catch {
      choice.checked = false; // storage is blocked: nothing would remember it
    }
  });
}
