// Where the focus is kept while what it is in changes.

// The arrows between versions stand in what they exchange: who walks along stays on the arrow, until they go elsewhere.
let arrow = -1;
const arrows = () => [...document.querySelectorAll(".version-arrows button")];

document.addEventListener("focusin", (event) => {
  arrow = arrows().indexOf(event.target);
});

document.addEventListener("htmx:afterSettle", () => {
  if (arrow >= 0 && document.activeElement === document.body) arrows()[arrow]?.focus({ preventScroll: true });
});

// Who works by keyboard keeps a place when what they were in is swapped for its next state, or goes: on what is called the
// same, on the way back, on what comes first in it, or on what stands next. After a click the focus stays free, for a row
// with focus in it does not go away by itself.
const STOPS = "a[href], button:enabled, summary, input:enabled, select:enabled, textarea:enabled";
const isStop = (each) => each.checkVisibility({ visibilityProperty: true }) && !each.closest("[inert]");
const stopsIn = (element) => [...element.querySelectorAll(STOPS)].filter(isStop);
const nameOf = (element) => element.getAttribute("aria-label") ?? element.textContent.trim();
let place = null;

for (const moved of ["focusin", "pointerdown"]) document.addEventListener(moved, () => (place = null));

function notePlace(target) {
  const focused = document.activeElement;
  if (!target?.contains(focused) || !focused.matches(":focus-visible")) return;
  const all = stopsIn(document.body);
  const at = all.indexOf(focused);
  const rest = [...all.slice(at + 1), ...all.slice(0, Math.max(at, 0)).reverse()];
  place = { name: nameOf(focused), target, around: target.parentElement, rest };
}

const isAlike = (each) => nameOf(each) === place.name;
const isBack = (each) => each.matches("[data-undo], .memory__actions button");

function give(next) {
  if (document.activeElement === document.body) next?.focus({ preventScroll: true });
}

function keepPlace() {
  if (!place) return;
  const { target, rest } = place;
  give((target.isConnected && stopsIn(target).find(isAlike)) || rest.find(isStop));
}

for (const swaps of ["htmx:beforeSwap", "htmx:oobBeforeSwap"]) {
  document.addEventListener(swaps, (event) => notePlace(event.detail.target));
}
document.addEventListener("click", (event) => notePlace(event.target.closest("[data-dismiss]")), true);

// What came in the place of all of it is asked first; what is taken away settles nowhere. Under an answer that is written
// anew, or on, nothing can be pressed: as after sending one is where the next message goes.
document.addEventListener("htmx:afterSettle", ({ detail: { elt } }) => {
  if (!place || place.target.isConnected || !place.around.contains(elt)) return;
  const stops = stopsIn(elt);
  const next = elt.matches("[data-stream]") ? document.querySelector("[data-composer]") : stops[0];
  give(stops.find(isAlike) ?? stops.find(isBack) ?? next);
});
document.addEventListener("htmx:afterRequest", keepPlace);
document.addEventListener("click", (event) => event.target.closest("[data-dismiss]") && keepPlace());
