"""Contains the phases that all rounds have: topics, load under faults, and the wait until no record is in flight."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from confluent_kafka.admin import AdminClient
from tests.audit.committed import OUTPUTS, Committed
from tests.chaos.crew import Crew
from tests.chaos.load import Load
from tests.chaos.scenario import Scenario
from tests.support.ledger import PARTITIONS

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import StageName, application_id
from traceweir.streams.worker.kafka.topic_admin import create_topics

STEP_S = 0.05
WARM_PATIENCE_S = 180.0
LONGER = 3.0
"""How many times as long as planned the load of a round is at most."""
PATIENCE_S = 60.0
"""A round ends when no record has arrived for this time, in seconds."""


def run_load(
    load: Load,
    crew: Crew,
    committed: Committed,
    report_phase: Callable[[str], object],
    *,
    is_warm: Callable[[], bool],
    on_warm: Callable[[], object] = lambda: None,
    sending_share: float = 1.0,
) -> float:
    """Sends the load, injects the faults, and reads the output; returns the longest time without an output.

    Faults begin when every partition of the first stage has finished a checkpoint and `is_warm()`; then `on_warm` is
    called. The records are sent in the first `sending_share` of the time of the faults. On a slow machine the load goes on
    until its faults have begun: a worker can have a fault only after its start.
    """
    report_phase("waiting for the first outputs")
    deadline = time.monotonic() + WARM_PATIENCE_S
    while len(committed.counted_partitions(committed.stages[0])) < PARTITIONS or not is_warm():
        if time.monotonic() > deadline:
            raise RuntimeError(f"no worker wrote outputs within {WARM_PATIENCE_S:g} s")
        load.go_on(STEP_S)
        crew.go_on(-1.0)
        committed.read(STEP_S)
    report_phase(f"under load for {crew.load_s:g} s")
    on_warm()
    load.restart()
    longest_s, last, came_at = 0.0, _output(committed), time.monotonic()
    sent_until, is_sending = 0.0, True
    while (passed_s := load.passed_s) < crew.load_s or (crew.has_due_faults and passed_s < crew.load_s * LONGER):
        if sending_share == 1 or passed_s < crew.load_s * sending_share:
            load.go_on(passed_s - sent_until)
            sent_until = passed_s
        elif is_sending:
            load.finish()
            is_sending = False
        crew.go_on(passed_s)
        committed.read(STEP_S)
        now = time.monotonic()
        longest_s = max(longest_s, now - came_at)
        if (count := _output(committed)) > last:
            last, came_at = count, now
    if is_sending:
        load.finish()
    return longest_s


def rest(
    load: Load,
    crew: Crew,
    committed: Committed,
    report_phase: Callable[[str], object],
    *,
    once: bool,
    patience_s: float = PATIENCE_S,
) -> None:
    """Reads until every record is accounted for, or until no record arrives; the audit reports what is missing."""
    came_at = time.monotonic()
    while time.monotonic() - came_at < patience_s:
        if committed.read(0.5):
            came_at = time.monotonic()
        calm = crew.calm(load.passed_s)
        arrived = committed.arrived() == load.sent
        missing = {
            "faults under way": not calm,
            "records": not arrived,
            "stages at work": not committed.is_at_rest(),
            "offsets": once and not committed.everything_is_read(),
        }
        # Without transactions the stages' counts can be ahead of the outputs, so the round then waits for longer than
        # the replacement of a dead scoring process takes.
        if not any(missing.values()) and not committed.read(1.0 if once else 10.0):
            return
        report_phase(f"waiting for rest: {', '.join(what for what, holds in missing.items() if holds)}")


def make_topics(bootstrap_servers: str, prefix: str, scenario: Scenario) -> list[str]:
    """Creates the topics of the round, and returns its applications."""
    settings = Settings(
        kafka_bootstrap_servers=bootstrap_servers,
        topic_prefix=prefix,
        otlp_spans_topic=f"{prefix}otlp_spans",
        otlp_logs_topic=f"{prefix}otlp_logs",
        replication_factor=scenario.nodes,
    )
    sets: Sequence[Sequence[StageName]] = (
        [[stage] for stage in scenario.stages] if scenario.split else [scenario.stages]
    )
    for stages in sets:
        if wrong := create_topics(settings, stages).wrong:
            raise RuntimeError("\n".join(wrong))
    return [application_id(prefix, stages) for stages in sets]


def delete_topics(bootstrap_servers: str, prefix: str) -> None:
    """Deletes all topics under a prefix."""
    client = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0, "error_cb": lambda _: None})
    names = [name for name in client.list_topics(timeout=30).topics if name.startswith(prefix)]
    if names and not client.list_topics(timeout=30).cluster_id.startswith("mockCluster"):
        for future in client.delete_topics(names).values():
            future.exception(timeout=30)


def _output(committed: Committed) -> int:
    return sum(len(committed.rows[topic]) for topic in ("sessions", *OUTPUTS))


def size_of(folder: Path) -> int:
    """Returns the size of the files in a folder in bytes."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) if folder.exists() else 0
