// Follows the state of the dashboard. A browser opens six connections to a host, so that all its pages share one stream:
// this file is the script of the SharedWorker that has it. A page loads it too, and asks by itself where there is no worker.
"use strict";
const ASK_EVERY_MS = 5000;
// The server sends news every few seconds. A stream that stays open and says nothing has lost its server.
const QUIET_MS = 15000;

// Calls `tell` once, with { state } or { failure }.
async function askForState(tell) {
  let message = { failure: "the dashboard does not answer" };
  try {
    const answer = await fetch("/api/v1/state", { cache: "no-store", signal: AbortSignal.timeout(ASK_EVERY_MS) });
    message = answer.ok ? { state: await answer.json() } : { failure: refusal(answer.status) };
  } catch {
    // No answer, or half of one.
  }
  tell(message);
}

function refusal(status) {
  return status === 401 ? "load this page again to log in" : `the dashboard answers with status ${status}`;
}

function followByAsking(tell) {
  askForState(tell);
  setInterval(() => askForState(tell), ASK_EVERY_MS);
}

function followByStream(tell) {
  let stream = null, heard = Date.now();
  function open() {
    stream = new EventSource("/api/v1/events");
    stream.addEventListener("state", (event) => {
      heard = Date.now();
      tell({ state: JSON.parse(event.data) });
    });
    // A stream that broke is opened again by the browser, one that was refused (too many, no token) by no one.
    stream.addEventListener("error", () => askForState(tell));
  }
  open();
  setInterval(() => {
    if (stream.readyState === EventSource.OPEN && Date.now() - heard < QUIET_MS) return;
    askForState(tell);
    if (stream.readyState === EventSource.CLOSED) open();
  }, ASK_EVERY_MS);
}

// Calls `tell` with each { state } or { failure } for as long as this page is open.
function followState(tell) {
  let asks = false;
  function ask() {
    if (!asks) followByAsking(tell);
    asks = true;
  }
  if (typeof SharedWorker === "undefined") return ask();
  let port = null;
  function join() {
    const worker = new SharedWorker("/assets/state.js", { name: "traceweir" });
    worker.addEventListener("error", ask);
    port = worker.port;
    port.addEventListener("message", (event) => tell(event.data));
    port.start();
  }
  join();
  // The worker does not see that a page has gone; a page that comes back from the browser's cache joins again.
  addEventListener("pagehide", () => port.postMessage("leaves"));
  addEventListener("pageshow", (event) => { if (event.persisted) join(); });
}

function tellPages() {
  const ports = new Set();
  const tell = (message) => ports.forEach((port) => port.postMessage(message));
  addEventListener("connect", (event) => {
    const [port] = event.ports;
    port.addEventListener("message", () => ports.delete(port));
    port.start();
    ports.add(port);
    askForState(tell);
  });
  followByStream(tell);
}

if (typeof SharedWorkerGlobalScope !== "undefined") tellPages();
