// What the browser lends: being installed, and a notification when something long is done while nobody looks.

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

// Whether somebody looks at that page already: each tab says so of itself.
const tabs = window.BroadcastChannel && new BroadcastChannel("memoryhub:looking");
const isHere = (url) => !document.hidden && location.pathname === url;
tabs?.addEventListener("message", ({ data }) => data.asked && isHere(data.asked) && tabs.postMessage({ seen: data.asked }));

function isSeen(url) {
  if (isHere(url) || !tabs) return isHere(url);
  return new Promise((done) => {
    tabs.addEventListener("message", ({ data }) => data.seen === url && done(true));
    tabs.postMessage({ asked: url });
    setTimeout(done, 500, false);
  });
}

// What the server says of one's own long work (events.js). Never what was said: a notification stands on locked screens.
document.addEventListener("memoryhub:done", async ({ detail: { kind, url } }) => {
  if (!wanted() || (await isSeen(url))) return;
  const registration = await worker.ready;
  const { runDone, answerDone, icon } = document.getElementById("texts").dataset;
  registration.showNotification(kind === "run" ? runDone : answerDone, { tag: url, icon, data: { url } });
});

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
