"""Measures records per second of bare aiokafka, of assemble, and of all stages, in turns on one Apache Kafka.

With `KAFKA_STREAMS_HOME`, also of a program with Kafka Streams that joins the same sessions. `BENCH_BASELINE=FOLDER` adds
all stages of another checkout to the turns.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

from benchmarks import kafka_streams
from benchmarks.process_cpu import ProcessCpu
from benchmarks.workload import fill
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import StageName, Topics
from traceweir.streams.worker.kafka.topic_admin import create_topics

ATTEMPTS = 3
SESSIONS = 45_000
"""With fewer sessions, the start of the worker and the broker's compiler would be a larger part of a run."""
BASELINE, KAFKA_STREAMS = "pass-through", "Kafka Streams"
BENCH_BASELINE = "BENCH_BASELINE"
CHECKOUT = "all stages of the baseline"
CASES: dict[str, list[StageName]] = {"assemble": ["assemble"], "all stages": ["assemble", "score", "gate"]}


class Measured(TypedDict):
    """Holds the figures that a run prints at its end."""

    rate: float
    """Records per second."""
    cpu_us: float
    """Microseconds of CPU per record."""
    parts_us: NotRequired[dict[str, float]]
    """Microseconds of CPU per record of each part of the work, by the part's name."""
    children_us: NotRequired[float]
    """Microseconds of CPU per record of the scoring processes; `one` adds it."""
    broker_us: NotRequired[float]
    """Microseconds of CPU per record of the broker; missing for the embedded broker, which is no process of its own."""
    ended: NotRequired[float]
    """When the measured time ended, by `time.perf_counter`."""


def run(
    servers: str, sessions: int = SESSIONS, rounds: int = 5, *, transactions: bool = True, broker: int | None = None
) -> dict[str, float]:
    """Prints every run, the medians and the ratios; returns the median rate of each case.

    `broker` is the process of the broker.

    A first round is not counted: the broker's compiler takes up to half a core while it is new. The cases of a round run
    one after another, so ratios within a round say more than ratios of medians where the machine's speed drifts.
    """
    streams = [KAFKA_STREAMS] if transactions and kafka_streams.classpath(os.environ) else []
    checkout = [CHECKOUT] if BENCH_BASELINE in os.environ else []
    rates: dict[str, list[float]] = defaultdict(list)
    costs: dict[str, list[float]] = defaultdict(list)
    wholes: dict[str, list[float]] = defaultdict(list)
    for turn in range(rounds + 1):
        for name in (BASELINE, *streams, *CASES, *checkout):
            found = one(servers, name, sessions, breakdown=turn == rounds, transactions=transactions, broker=broker)
            parts = ", ".join(f"{part} {cost:.1f}" for part, cost in sorted(found.get("parts_us", {}).items()))
            others = {"scoring": found["children_us"]} | (
                {"broker": found["broker_us"]} if "broker_us" in found else {}
            )
            whole = found["cpu_us"] + sum(others.values())
            print(
                f"  {name}: {found['rate']:,.0f} records/s, {found['cpu_us']:.1f} us CPU a record, {whole:.1f} with "
                f"{', '.join(f'{other} {cost:.1f}' for other, cost in others.items())}"
                f"{'; us: ' + parts if parts else ''}{'' if turn else ' (not counted)'}"
            )
            if turn:
                rates[name].append(found["rate"])
                costs[name].append(found["cpu_us"])
                wholes[name].append(whole)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    for name, rate in medians.items():
        print(
            f"MEDIAN {name}: {rate:,.0f} records/s, {_ratio(rates, name, BASELINE)} of pass-through, "
            f"{statistics.median(costs[name]):.1f} us CPU, {statistics.median(wholes[name]):.1f} with the others"
        )
    if streams:
        print(
            f"assemble beside Kafka Streams: rate {_ratio(rates, 'assemble', KAFKA_STREAMS)}, "
            f"CPU a record {_ratio(costs, 'assemble', KAFKA_STREAMS)}"
        )
    if checkout:
        print(
            f"all stages beside the baseline: rate {_ratio(rates, 'all stages', CHECKOUT)}, "
            f"CPU with scoring and broker {_ratio(wholes, 'all stages', CHECKOUT)}"
        )
    return medians


def _ratio(values: Mapping[str, Sequence[float]], name: str, other: str) -> str:
    ratios = [one / another for one, another in zip(values[name], values[other], strict=True)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def one(
    servers: str,
    name: str,
    sessions: int,
    *,
    breakdown: bool = False,
    transactions: bool = True,
    variables: Mapping[str, str] | None = None,
    broker: int | None = None,
    prefixes: list[str] | None = None,
) -> Measured:
    """Runs one case with its own load and topics, and with more variables of the environment.

    The prefix of its topics is added to `prefixes`.
    """
    stages = CASES["all stages"] if name == CHECKOUT else CASES.get(name, ["assemble"])
    sessions *= kafka_streams.LONGER if name == KAFKA_STREAMS else 1
    prefix, records = loaded(servers, stages, sessions)
    if prefixes is not None:
        prefixes.append(prefix)
    topics = Topics.of(prefix)
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": servers,
            "TRACEWEIR_TOPIC_PREFIX": prefix,
            "TRACEWEIR_STATE_DIR": folder,
            "TRACEWEIR_EMBEDDER": "none",
            "TRACEWEIR_CLOSE_LINGER_S": "0.05",
            "TRACEWEIR_DELIVERY": "exactly_once" if transactions else "at_least_once",
            **(variables or {}),
        }
        if breakdown:
            environment["BREAKDOWN"] = "1"
        command = [sys.executable, "-m", "benchmarks.timed_worker", ",".join(stages), str(records), str(sessions)]
        if name == BASELINE:
            sources = f"{topics.traces},{topics.invocations}"
            command = [sys.executable, "-m", "benchmarks.passthrough", servers, sources, topics.sessions, str(records)]
        elif name == KAFKA_STREAMS:
            command = kafka_streams.command(os.environ, servers, topics, folder, records, sessions)
        folder_of_code = Path(os.environ[BENCH_BASELINE]).resolve() if name == CHECKOUT else Path()
        if name == CHECKOUT:
            roots = ("", "schemas", "scorers", "streams")
            environment["PYTHONPATH"] = os.pathsep.join(str(folder_of_code / root) for root in roots)
        # Kafka Streams measures half of the load, so the CPU of others over the whole load would say nothing.
        return _run(name, command, environment, folder_of_code, records, None if name == KAFKA_STREAMS else broker)


def _run(
    name: str, command: Sequence[str], environment: Mapping[str, str], folder: Path, records: int, broker: int | None
) -> Measured:
    with subprocess.Popen(
        command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        others = ProcessCpu(process.pid, broker)
        others.start()
        try:
            stdout, stderr = process.communicate(timeout=180)
        finally:
            process.kill()
            others.stop()
    end = time.perf_counter()
    start = stdout.rfind(b'{"rate"')
    if start < 0:
        raise RuntimeError(f"{name} failed with {process.returncode}:\n{stderr.decode(errors='replace')[-2000:]}")
    found: Measured = json.loads(stdout[start:])
    # A program that does not say when it has ended does so with its process.
    children_s, broker_s = others.used_s(found.get("ended", end) - records / found["rate"])
    found["children_us"] = children_s / records * 1e6
    if broker is not None:
        found["broker_us"] = broker_s / records * 1e6
    return found


def loaded(servers: str, stages: list[StageName], sessions: int) -> tuple[str, int]:
    """Creates topics with the load; returns their prefix and the number of records."""
    for _ in range(ATTEMPTS):
        prefix = f"bench{time.time_ns()}."
        create_topics(Settings(kafka_bootstrap_servers=servers, topic_prefix=prefix), stages)
        try:
            return prefix, fill(servers, Topics.of(prefix), sessions)
        except RuntimeError as error:
            failed = error
    raise failed
