"""Measures the pages of the dashboard in Chromium on loopback: their weight, and the time to their first view.

It needs the packages of `make test-browser` and Chromium. Run it with another number of results in the store by
`python -m benchmarks.page 10000000`.
"""

import shutil
import statistics
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlencode

import httpx
from tests.browser.conftest import ARGUMENTS
from tests.support.dashboard_site import Site, served
from tests.support.full_store import BEGIN, END, fill
from tests.support.stores import open_store

RESULTS_STORED = 200_000
VISITS, WARM_UP = 20, 2
ASSETS = ("style.css", "charts.js", "live.js", "uPlot.iife.min.js", "uPlot.min.css")
FIRST_VIEW = """new Promise(done => new PerformanceObserver(list => {
    const found = list.getEntriesByName("first-contentful-paint")
    if (found.length) done(found[0].startTime)
}).observe({type: "paint", buffered: true}))"""
"""JavaScript that waits for the first view, which can come after the page has loaded, and returns its milliseconds."""
_MONTH = {"since": BEGIN.isoformat(), "until": END.isoformat()}
VIEWS = {
    "overview of a day": "/",
    "overview of 30 days": f"/?{urlencode(_MONTH)}",
    "failed sessions of 30 days": f"/sessions?{urlencode({**_MONTH, 'status': 'FAILED'})}",
    "a metric of a day": "/metric?metric=completeness",
}


def run(results: int = RESULTS_STORED) -> None:
    """Prints the bytes that a browser loads for each view, and the milliseconds to its first view and to its end."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if find_spec("playwright") is None or program is None:
        print("  skipped: needs Playwright and Chromium; `make test-browser` installs Playwright")
        return
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        fill(Path(folder) / "store.duckdb", results)
        print(f"  {results:,} results", flush=True)
        site = Site(open_store(Path(folder) / "store.duckdb"), now=END)
        browser = driver.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        with served(site) as address, httpx.Client(base_url=address, headers={"accept-encoding": "gzip"}) as client:
            shared = sum(_weight(client, f"/assets/{name}") for name in ASSETS)
            print(f"  style and scripts, once: {shared / 1000:.0f} kB compressed")
            for name, view in VIEWS.items():
                weight = (shared + _weight(client, view)) / 1000
                context = browser.new_context(viewport={"width": 1280, "height": 900})
                first_ms, whole_ms = [], []
                for _ in range(WARM_UP + VISITS):
                    page = context.new_page()
                    page.goto(address + view)
                    page.wait_for_load_state("load")
                    first_ms.append(page.evaluate(FIRST_VIEW))
                    whole_ms.append(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"))
                    page.close()
                context.close()
                print(
                    f"  {name}: {weight:.0f} kB; first view {_shown(first_ms)}, loaded {_shown(whole_ms)}", flush=True
                )
        browser.close()


def _weight(client: httpx.Client, address: str) -> int:
    with client.stream("GET", address) as answer:
        return sum(map(len, answer.iter_raw()))


def _shown(times_ms: list[float]) -> str:
    quantiles = statistics.quantiles(times_ms[WARM_UP:], n=20)
    return f"{quantiles[9]:.0f} ms (p95 {quantiles[18]:.0f} ms)"


if __name__ == "__main__":
    run(*map(int, sys.argv[1:]))
