// Lets one key do what a button or a link of the review page does: `data-key` names the key.
"use strict";
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const field = event.target.closest("input, select, textarea");
  if (field !== null) {
    // Escape leaves a field, so that the keys work again.
    if (event.key === "Escape") field.blur();
    return;
  }
  for (const each of document.querySelectorAll("[data-key]")) {
    if (each.dataset.key !== event.key.toLowerCase()) continue;
    event.preventDefault();
    if (each.matches("textarea, input")) each.focus();
    else each.click();
    return;
  }
});
