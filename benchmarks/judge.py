"""Measures the rate of judging as a share of the ideal rate, with 64 concurrent questions and 0.5 s per answer."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from itertools import count
from multiprocessing.connection import Connection

from tests.support.judged import judging, question
from tests.support.openai_server import Say, openai_server

from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.process_setup import event_loop, tune_gc

LATENCY_S = 0.5
IN_FLIGHT = 64
ASKING = 2 * IN_FLIGHT
"""Number of tasks that ask one question after the other.

The number exceeds the limit of concurrent questions, as the number of sessions that are scored at the same time does.
"""
MODEL = "openai/gpt-4o-mini"
WARM_UP_S, MEASURED_S = 5.0, 30.0


def run() -> None:
    """Prints the rate, and its share of the ideal rate."""
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    server.start()
    url = ours.recv()
    try:
        with asyncio.Runner(loop_factory=event_loop()) as runner:
            rate, cpu_s = runner.run(_ask(url))
    finally:
        server.terminate()
        server.join()
    ideal = IN_FLIGHT / LATENCY_S
    print(
        f"{MEASURED_S:g} s, {IN_FLIGHT} in flight, {LATENCY_S:g} s each: {rate:.1f} a second, {rate / ideal:.1%} of the ideal {ideal:.0f}; "
        f"{cpu_s * 1e3:.2f} ms of CPU a question"
    )


async def _ask(url: str) -> tuple[float, float]:
    """Returns answered questions per second, and seconds of CPU per question."""
    judge = judging(url, clock=utc_now, config={"concurrency": IN_FLIGHT}).session()  # type: ignore[arg-type]
    answered = 0

    async def go_on_asking(who: int) -> None:
        nonlocal answered
        for number in count():
            await judge.ask(question(f"{who} {number} {'word ' * 500}", model=MODEL))
            answered += 1

    asking = [asyncio.create_task(go_on_asking(who)) for who in range(ASKING)]
    await asyncio.sleep(WARM_UP_S)
    tune_gc()  # as in a worker's scoring process
    before, began, cpu = answered, time.perf_counter(), time.process_time()
    await asyncio.sleep(MEASURED_S)
    done, took_s, cpu_s = answered - before, time.perf_counter() - began, time.process_time() - cpu
    for each in asking:
        each.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    return done / took_s, cpu_s / done


def _serve(connection: Connection) -> None:
    async def serve() -> None:
        async with openai_server(default=lambda body: Say(after_s=LATENCY_S)) as server:
            connection.send(server.url)
            await asyncio.Event().wait()

    asyncio.run(serve())
