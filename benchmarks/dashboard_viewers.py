"""Measures `traceweir dashboard` with 50 browsers on the overview while results arrive, and without a browser.

It needs the packages of the extra `dashboard`. Run it with another number of results in the store by
`python -m benchmarks.dashboard_viewers 10000000`.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Process
from pathlib import Path

import httpx
import psutil
from tests.support.full_store import END, fill
from tests.support.results import make_score, put_scores

from benchmarks.dashboard_memory import DAY, MONTH, dashboard
from traceweir.streams.base.settings import Settings
from traceweir.streams.board.dashboard.live import LOOKS_S
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

RESULTS_STORED = 1_000_000
BROWSERS = 50
SECONDS = 20.0
RELOAD_AFTER_S = 2.0
"""Seconds from the answer that a browser has to its next request: those of the page's script."""
BATCHES_PER_S = 4


def run(results: int = RESULTS_STORED) -> None:
    """Prints the time to a page, and the cores that the process takes."""
    with tempfile.TemporaryDirectory() as folder, EmbeddedBroker() as broker:
        file = Path(folder) / "store.duckdb"
        fill(file, results)
        create_topics(Settings(kafka_bootstrap_servers=broker.bootstrap_servers))
        print(f"  {results:,} results", flush=True)
        with dashboard(broker.bootstrap_servers, file) as (pid, address):
            for title, span in (("a day", DAY), ("30 days", MONTH)):
                with _arriving(broker.bootstrap_servers, 2_000):
                    began_s = time.monotonic()
                    httpx.get(address, params=span, timeout=60).raise_for_status()
                    first_s = time.monotonic() - began_s
                    times_s, cores = asyncio.run(_visit(pid, address, span))
                quantiles = statistics.quantiles(times_s, n=20)
                print(
                    f"  {BROWSERS} browsers on the overview of {title}, 2,000 results/s: {quantiles[9] * 1000:.0f} ms "
                    f"(p95 {quantiles[18] * 1000:.0f} ms), {len(times_s)} pages, {cores:.2f} cores; the first page, for one browser: "
                    f"{first_s * 1000:.0f} ms",
                    flush=True,
                )
            for rate in (50, 0):
                with _arriving(broker.bootstrap_servers, rate):
                    _catch_up(address)
                    # Until then the browsers of before count as looking.
                    time.sleep(LOOKS_S)
                    with _cores(pid) as found:
                        time.sleep(SECONDS)
                print(f"  no browser, {rate} results/s: {found[0]:.3f} cores", flush=True)


def _catch_up(address: str) -> None:
    """Waits until what has arrived so far is stored."""
    while (httpx.get(f"{address}/api/v1/state").json()["behind"] or 0) > BATCHES_PER_S * 50:
        time.sleep(0.5)
    time.sleep(2)


async def _visit(pid: int, address: str, span: dict[str, str]) -> tuple[list[float], float]:
    times_s: list[float] = []
    end_s = time.monotonic() + SECONDS

    async def browse(number: int) -> None:
        await asyncio.sleep(RELOAD_AFTER_S * number / BROWSERS)
        async with httpx.AsyncClient(base_url=address, timeout=60) as client:
            while time.monotonic() < end_s:
                began_s = time.monotonic()
                (await client.get("/", params=span)).raise_for_status()
                times_s.append(time.monotonic() - began_s)
                await asyncio.sleep(RELOAD_AFTER_S)

    with _cores(pid) as found:
        await asyncio.gather(*map(browse, range(BROWSERS)))
    return times_s, found[0]


@contextmanager
def _cores(pid: int) -> Iterator[list[float]]:
    """Yields a list that gets the cores that a process took within the block."""
    process = psutil.Process(pid)
    found: list[float] = []
    began_s = time.monotonic()
    used_s = sum(process.cpu_times()[:2])
    yield found
    found.append((sum(process.cpu_times()[:2]) - used_s) / (time.monotonic() - began_s))


@contextmanager
def _arriving(servers: str, rate: int) -> Iterator[None]:
    """Writes this many new results a second until the block ends, from a process of its own."""
    writer = Process(target=_write, args=(servers, rate), daemon=True)
    writer.start()
    try:
        yield
    finally:
        writer.kill()
        writer.join()


def _write(servers: str, rate: int) -> None:
    begun = time.time_ns()
    number = 0
    in_batch = max(1, rate // BATCHES_PER_S)
    at_s = time.monotonic()
    while rate:
        names = range(number, number + in_batch)
        put_scores(servers, [make_score(f"{begun}-{each}", value=0.5, occurred_at=END) for each in names])
        number += in_batch
        at_s += in_batch / rate
        time.sleep(max(0.0, at_s - time.monotonic()))


if __name__ == "__main__":
    run(*map(int, sys.argv[1:]))
