// The page of all memories: what is selected is counted, and all that is shown is selected at once.

const boxes = () => [...document.querySelectorAll('#memory-rows tr:not(:has(.forgotten)) [name="memory"]')];
const count = document.querySelector("[data-selected]");

function show() {
  const checked = boxes().filter((each) => each.checked).length;
  count.textContent = checked ? `${count.dataset.selected} ${checked}` : "";
  const all = document.querySelector("[data-check-all]");
  if (!all) return;
  all.checked = checked > 0 && checked === boxes().length;
  all.indeterminate = checked > 0 && !all.checked;
}

document.addEventListener("change", ({ target }) => {
  if (target.matches("[data-check-all]")) for (const box of boxes()) box.checked = target.checked;
  if (target.closest("#memory-rows")) show();
});

// A refreshed table keeps what is selected in it.
let selected = [];
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.target.id !== "memory-rows") return;
  selected = boxes().filter((each) => each.checked).map((each) => each.value);
});
document.addEventListener("htmx:afterSettle", () => {
  for (const box of boxes()) box.checked ||= selected.includes(box.value);
  selected = [];
  show();
});
