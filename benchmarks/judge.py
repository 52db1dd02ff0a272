"""Judges: how much of the ideal rate is reached when each answer takes half a second and 64 questions are with the provider."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from multiprocessing.connection import Connection

from tests.support.judged import judging, question
from tests.support.openai_server import Say, openai_server

from tracegate.streams.clock import utc_now
from tracegate.streams.process import event_loop, spare_the_collector

LATENCY_S = 0.5
IN_FLIGHT = 64
QUESTIONS = 1_280


def run() -> None:
    """Print the rate, and how much of the ideal one it is."""
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    server.start()
    url = ours.recv()
    try:
        with asyncio.Runner(loop_factory=event_loop()) as runner:
            took_s, cpu_s = runner.run(_ask(url))
    finally:
        server.terminate()
        server.join()
    rate, ideal = QUESTIONS / took_s, IN_FLIGHT / LATENCY_S
    print(
        f"{QUESTIONS} questions, {IN_FLIGHT} in flight, {LATENCY_S:g} s each: {rate:.1f} a second, {rate / ideal:.1%} of the ideal "
        f"{ideal:.0f}; {cpu_s / QUESTIONS * 1e3:.2f} ms of CPU a question"
    )


async def _ask(url: str) -> tuple[float, float]:
    judge = judging(url, clock=utc_now, config={"concurrency": IN_FLIGHT}).session()  # type: ignore[arg-type]
    await asyncio.gather(*(judge.ask(question(f"warm up {number}")) for number in range(IN_FLIGHT)))
    spare_the_collector()  # as the process does in which a worker scores
    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(judge.ask(question(f"{number} {'word ' * 500}")) for number in range(QUESTIONS)))
    return time.perf_counter() - began, time.process_time() - cpu


def _serve(connection: Connection) -> None:
    async def serve() -> None:
        async with openai_server(default=lambda body: Say(after_s=LATENCY_S)) as server:
            connection.send(server.url)
            await asyncio.Event().wait()

    asyncio.run(serve())
