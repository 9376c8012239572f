// Sections of a long page as tabs: one group of them is shown, that of the address, of an error, or the last one chosen.

const tabs = [...document.querySelectorAll("[data-tabs] a")];
const groups = [...document.querySelectorAll("[data-tab]")];
const groupOf = (link) => document.querySelector(link.getAttribute("href"))?.closest("[data-tab]");
const key = `tab:${location.pathname}`;

// On a phone they are wider than the window: the one that is shown stands in the middle of what is seen of them.
function bring(link) {
  const [around, box] = [link.parentElement.getBoundingClientRect(), link.getBoundingClientRect()];
  link.parentElement.scrollLeft += box.x + box.width / 2 - around.x - around.width / 2;
}

function show(group) {
  for (const each of groups) each.classList.toggle("tabbed--open", each === group);
  for (const link of tabs) {
    if (groupOf(link) === group) {
      link.setAttribute("aria-current", "true");
      bring(link);
    } else link.removeAttribute("aria-current");
  }
  try {
    sessionStorage.setItem(key, group.dataset.tab);
  } catch {
    // Storage is blocked: the next page begins with the first.
  }
}

function last() {
  try {
    return groups.find((group) => group.dataset.tab === sessionStorage.getItem(key));
  } catch {
    return null;
  }
}

const named = () => location.hash.length > 1 && document.getElementById(location.hash.slice(1))?.closest("[data-tab]");
const faulty = () => groups.find((group) => group.querySelector(".field--error, [aria-invalid='true'], [role='alert']"));

show(faulty() ?? (named() || last() || groups[0]));
faulty()?.querySelector("[aria-invalid='true']")?.focus(); // which brings it into view
addEventListener("hashchange", () => named() && show(named()));

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-tabs] a");
  if (!link) return;
  event.preventDefault();
  history.replaceState(null, "", link.getAttribute("href"));
  show(groupOf(link));
});

// What is saved as it is changed and was refused goes back to what holds.
document.addEventListener("htmx:responseError", (event) => event.detail.elt.matches("[data-saves]") && event.detail.elt.reset());
document.addEventListener("htmx:sendError", (event) => event.detail.elt.matches("[data-saves]") && event.detail.elt.reset());

// A list that is walked through with arrow keys is saved by Enter or when it is left, and not with every step.
const isSaved = (element) => element.matches?.("[data-saves] select");
let isWalking = false;
let walked = null;

function saveWalked() {
  const list = walked;
  isWalking = false;
  walked = null;
  list?.dispatchEvent(new Event("change", { bubbles: true }));
}

addEventListener("pointerdown", () => (isWalking = false), true);
addEventListener("focusout", saveWalked);
addEventListener("keydown", (event) => {
  isWalking = isSaved(event.target) && !["Enter", " "].includes(event.key);
  if (event.key !== "Enter" || !walked) return;
  event.preventDefault();
  saveWalked();
});
addEventListener(
  "change",
  (event) => {
    if (!isWalking || !isSaved(event.target)) return;
    event.stopImmediatePropagation();
    walked = event.target;
  },
  true,
);
