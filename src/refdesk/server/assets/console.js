// Keys for those who like them; every page works without.
"use strict";

const field = document.getElementById("q");
const dialog = document.getElementById("keys");
const results = [...document.querySelectorAll("a.result")];

function step(by) {
  if (!results.length) return;
  const here = results.indexOf(document.activeElement);
  const next = here < 0 ? (by > 0 ? 0 : results.length - 1) : Math.min(Math.max(here + by, 0), results.length - 1);
  results[next].focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest("input, textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (dialog.open) return;
  if (event.key === "/") field.select();
  else if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "?") dialog.showModal();
  else return;
  event.preventDefault();
});
