// What Django's admin leaves unsaid for screen readers and keyboards.
"use strict";

const texts = document.currentScript.dataset;

// The search boxes over long lists (select2) give the part that shows the choice no name: one hears "text box".
function nameSearchBoxes() {
  for (const select of document.querySelectorAll("select.admin-autocomplete")) {
    const name = select.getAttribute("aria-label") || select.labels?.[0]?.textContent.trim();
    const shown = select.nextElementSibling?.querySelector(".select2-selection__rendered");
    if (name && shown) shown.setAttribute("aria-label", name);
  }
}

// Columns of a table of fields whose head has not a word in it have no head.
for (const head of document.querySelectorAll("#content-main th:empty")) head.setAttribute("role", "presentation");

// Fields in a table have their name in its head, and of a date and its time only the row has one.
function nameFields() {
  for (const field of document.querySelectorAll("#content-main :is(input:not([type=hidden]), select, textarea)")) {
    if (field.labels?.length || field.hasAttribute("aria-label")) continue;
    const cell = field.closest("td");
    const head = cell?.closest("table").querySelectorAll("thead th")[[...cell.parentElement.cells].indexOf(cell)];
    const row = field.closest(".form-row")?.querySelector("label, legend");
    const name = (head ?? row)?.textContent.trim();
    if (name) field.setAttribute("aria-label", name);
  }
  for (const icon of document.querySelectorAll(".help-tooltip[aria-label]")) icon.setAttribute("role", "img");
}

// What is wider than a phone scrolls in its own box, which the arrow keys reach only if it can be focused.
function letBoxesScroll() {
  for (const box of document.querySelectorAll("#changelist .results, .js-inline-admin-formset, #change-history")) {
    if (box.scrollWidth > box.clientWidth) {
      box.tabIndex = 0;
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", texts.list);
    }
  }
}

// The picture before the search box has a name, which axe does not take for a label.
document.getElementById("searchbar")?.setAttribute("aria-label", texts.search);

globalThis.django?.jQuery?.(nameSearchBoxes); // after Django's own, which makes them
addEventListener("load", () => {
  nameFields();
  letBoxesScroll();
});
