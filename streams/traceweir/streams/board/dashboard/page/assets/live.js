// Loads the figures of the page again after the store has changed, and shows how far behind the store is.
"use strict";
(() => {
  const EVERY_MS = 2000;
  const status = document.getElementById("live"), problem = document.getElementById("problem");
  const health = document.getElementById("health"), held = document.getElementById("held");
  // The rows that the store had when the server made this page: what comes before the first state is shown too.
  let storedRows = Number(status.dataset.storedRows), loading = false, again = false, pressed = false, shown = false;
  addEventListener("pointerdown", () => { pressed = true; }, true);
  for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => { pressed = false; }, true);

  function say(state) {
    const isRed = state.health.some((part) => part.state === "failure");
    status.classList.remove("off");
    status.classList.toggle("bad", isRed || Boolean(state.problem));
    status.textContent = state.problem ? "not receiving" : isRed ? "not healthy" : state.behind === null ? "connecting" : state.behind ? `${state.behind.toLocaleString("en").replaceAll(",", "\u202f")} ${state.behind === 1 ? "record" : "records"} behind` : "up to date";
    problem.hidden = !state.problem;
    problem.querySelector("span").textContent = state.problem ?? "";
    if (!isBusy(health)) health.replaceChildren(...state.health.map(partOfHealth));
  }

  // What came from Kafka is text here, and never markup.
  function partOfHealth({ check, state, text }) {
    const part = document.createElement("li"), name = document.createElement("b"), word = document.createElement("span");
    part.className = state.replace(" ", "-");
    name.textContent = check;
    word.className = "visually-hidden";
    word.textContent = `${state}: `;
    part.append(word, name, ` ${text}`);
    return part;
  }

  function isBusy(part) {
    // A person who points, drags, reads details, selects rows or moves by keyboard must not lose what is held.
    return pressed || part.matches(":hover") || part.contains(document.activeElement) || part.querySelector("details[open], input:checked") !== null || String(getSelection()).length > 0;
  }

  // A chart stays in its place with new figures, so that it does not flicker.
  function keepCharts(part, fresh) {
    const old = part.querySelectorAll(".chart"), places = fresh.querySelectorAll(".chart");
    if (old.length !== places.length) return;
    places.forEach((place, at) => {
      if (old[at].getAttribute("aria-label") !== place.getAttribute("aria-label")) return;
      for (const name of ["chart", "brush"]) if (place.dataset[name]) old[at].dataset[name] = place.dataset[name];
      place.replaceWith(old[at]);
    });
  }

  // What came while a part is held: its sessions by their links, or only that there is something.
  function announce(waiting) {
    const links = (part) => new Set([...part.querySelectorAll('a[href*="session_id="]')].map((link) => link.getAttribute("href")));
    let sessions = 0;
    for (const { part, fresh } of waiting) {
      const known = links(part);
      for (const link of links(fresh)) if (part.id === "found" && !known.has(link)) sessions += 1;
    }
    held.hidden = waiting.length === 0;
    held.textContent = sessions ? `${sessions} new ${sessions === 1 ? "session" : "sessions"}: show` : "new figures: show";
  }

  held.addEventListener("click", () => { shown = true; again = true; if (!loading) load(); });

  async function load() {
    if (document.querySelector("[data-live]") === null) return;
    if (loading || document.hidden) { again = true; return; }
    loading = true;
    again = false;
    const waiting = [], all = shown;
    shown = false;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      // The server gives an earlier page while it computes one that takes long.
      if (Number(page.getElementById("live")?.dataset.storedRows) < storedRows) again = true;
      for (const part of document.querySelectorAll("[data-live]")) {
        const fresh = page.getElementById(part.id);
        if (fresh === null || fresh.innerHTML === part.dataset.source) continue;
        if (!all && isBusy(part)) { again = true; waiting.push({ part, fresh }); continue; }
        const source = fresh.innerHTML;
        keepCharts(part, fresh);
        part.replaceWith(fresh);
        fresh.dataset.source = source;
      }
      announce(waiting);
      const asOf = document.getElementById("as-of"), fresh = page.getElementById("as-of");
      if (asOf && fresh && waiting.length === 0) asOf.textContent = fresh.textContent;
      document.dispatchEvent(new Event("traceweir:replaced"));
    } catch {
      // What follows the state reports that the server is gone.
    } finally {
      setTimeout(() => { loading = false; if (again) load(); }, EVERY_MS);
    }
  }

  followState(({ state, failure }) => {
    if (failure) {
      status.classList.add("off");
      status.textContent = failure;
      health.replaceChildren(partOfHealth({ check: "dashboard", state: "failure", text: "unknown: no state was received" }));
      return;
    }
    say(state);
    if (state.stored_rows !== storedRows && !("fixed" in status.dataset)) load();
    storedRows = state.stored_rows;
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && again) load(); });
})();
