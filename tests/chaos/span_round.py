"""Runs one round whose input are OTLP requests, and compares the outputs with those of a reading without Kafka."""

from __future__ import annotations

import json
import os
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.audit import claims
from tests.audit.committed import SPAN_INPUTS, Committed
from tests.audit.spans import CONFIG, faults, late_traces
from tests.chaos.crew import Crew
from tests.chaos.load import Load
from tests.chaos.outcome import Outcome
from tests.chaos.phases import delete_topics, make_topics, rest, run_load, size_of
from tests.chaos.scenario import Scenario
from tests.chaos.small_disk import SmallDisk
from tests.support.kafka_cluster import KafkaCluster
from tests.support.span_ledger import SpanLedger
from tests.support.workers import Fleet

SENDING_SHARE = 0.35
"""Requests are sent in this share of the time of the faults. In the rest of the time the traces are published."""
GRACE_SHARE = 0.55
"""How long a trace waits for its spans, as a share of the time of the faults.

A partition must be without a worker for a shorter time, so that no span comes after its trace was published.
"""
VARIABLES = {"TRACEWEIR_GRACE_S": "240", "TRACEWEIR_GUARD_S": "900"}
_REQUESTS_SHARE = 0.25
"""Requests a second as a share of the scenario's rate: a request holds about six spans."""


class TooSlowError(RuntimeError):
    """Records waited for a worker for so long that most traces were published without some of their spans."""


class SpansCommitted(Committed):
    """The committed records of a round of spans, and how long records waited for the stage collect."""

    def __init__(self, bootstrap_servers: str, prefix: str, *applications: str) -> None:
        super().__init__(bootstrap_servers, prefix, *applications, spans=True)
        self.longest_wait_s = 0.0
        """The longest time from the arrival of a record to the checkpoint with it, in seconds."""
        self._waiting: deque[tuple[float, int]] = deque()

    def read(self, seconds: float) -> int:
        """Reads on for a time; returns the number of records."""
        count = super().read(seconds)
        now, consumed = time.monotonic(), self.counts()["collect"]["consumed"]
        arrived = sum(len(self.rows[topic]) for topic in SPAN_INPUTS)
        if not self._waiting or arrived > self._waiting[-1][1]:
            self._waiting.append((now, arrived))
        while self._waiting and self._waiting[0][1] <= consumed:
            self._waiting.popleft()
        if self._waiting:
            self.longest_wait_s = max(self.longest_wait_s, now - self._waiting[0][0])
        return count


def play_spans(
    scenario: Scenario,
    bootstrap_servers: str,
    cluster: KafkaCluster | None,
    folder: Path,
    report_phase: Callable[[str], object] = lambda phase: None,
) -> Outcome:
    """Runs a round on its own topics, which are deleted afterwards. The arguments are those of `round.play`.

    Raises:
        TooSlowError: The machine was too busy for the round, and spans came after their trace was published.
    """
    trace_grace_s = scenario.load_s * GRACE_SHARE
    started = time.monotonic()
    prefix = f"chaos-{scenario.seed}-{os.urandom(3).hex()}."
    ledger = SpanLedger(scenario.seed)
    config = folder / "config.json"
    config.write_text(json.dumps(CONFIG))
    names = {f"TRACEWEIR_{topic.upper()}_TOPIC": prefix + topic for topic in ("otlp_spans", "otlp_logs")}
    with ExitStack() as stack:
        applications = make_topics(bootstrap_servers, prefix, scenario)
        stack.callback(delete_topics, bootstrap_servers, prefix)
        disk = stack.enter_context(SmallDisk(folder / "disk")) if scenario.small_disk else None
        committed = SpansCommitted(bootstrap_servers, prefix, *applications)
        stack.enter_context(committed)
        waits = dict.fromkeys(("TRACEWEIR_TRACE_GRACE_S", "TRACEWEIR_TRACE_IDLE_S"), f"{trace_grace_s:g}")
        variables = {**VARIABLES, **names, **waits}
        fleet = stack.enter_context(Fleet(bootstrap_servers, prefix, folder, config, variables=variables))
        load = Load(ledger, bootstrap_servers, prefix, round(scenario.rate * _REQUESTS_SHARE), idempotent=True)
        crew = Crew(fleet, scenario, cluster, disk)
        stack.callback(crew.release)
        pause_s = run_load(load, crew, committed, report_phase, is_warm=lambda: True, sending_share=SENDING_SHARE)
        rest(load, crew, committed, report_phase, once=True, patience_s=trace_grace_s + 60)
        if cluster is not None:
            cluster.wait()
        report_phase("reading the spans without Kafka")
        crew.counters["stage raises"] = sum(worker.stumbles for worker in fleet.started)
        state_bytes = max(size_of(worker.state_dir) for worker in fleet.started)
        fleet.end()
        late = late_traces(committed)
        if len(late) > len(ledger.traces) / 2:
            raise TooSlowError(
                f"{len(late)} of {len(ledger.traces)} traces were published before all their spans had come: records waited "
                f"up to {committed.longest_wait_s:.0f} s for a worker, and a trace waits {trace_grace_s:g} s for its spans; "
                "take a longer load or a machine that is less busy"
            )
        found = faults(ledger, committed, late)
        if late and committed.longest_wait_s < trace_grace_s / 2:
            found.setdefault(claims.WRONG, {})["traces_wait_for_their_spans"] = sorted(late)
        return Outcome(
            scenario=scenario,
            faults=crew.counters,
            ends=crew.ends,
            sent=Counter({**ledger.sent, "records": load.sent, "late traces": len(late)}),
            dead_lettered=len(committed.rows["dead-letters"]),
            committed={topic: len(rows) for topic, rows in committed.rows.items()},
            found=found,
            longest_pause_s=pause_s,
            state_bytes=state_bytes,
            took_s=time.monotonic() - started,
        )
