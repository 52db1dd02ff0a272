"""Runs one round: load, faults, rest; then the audit, and the same records again without faults."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from tests.audit import claims
from tests.audit.committed import CHANGELOG, INPUTS, OUTPUTS, Committed
from tests.audit.evidence import Evidence
from tests.chaos.crew import Crew
from tests.chaos.load import Load
from tests.chaos.scenario import Scenario
from tests.chaos.small_disk import SmallDisk
from tests.chaos.undisturbed import copy_inputs, differences
from tests.support.kafka_cluster import KafkaCluster
from tests.support.ledger import PARTITIONS, Ledger
from tests.support.unsteady import offer_plugin
from tests.support.workers import Fleet

from traceweir.streams.kafka.topic_admin import create_topics
from traceweir.streams.settings import Settings
from traceweir.streams.topics import STAGES, StageName, application_id

STEP_S = 0.05
WARM_PATIENCE_S = 180.0
PATIENCE_S = 60.0
"""A round ends when no record has arrived for this time, in seconds."""
GRACE_S, FORMER_S, GUARD_S, TOO_LATE_S = 240.0, 450.0, 900.0, 1500.0
"""Far enough from each other and from the duration of a round that no pause decides which records belong together.

In a backlog strays arrive as late as the backlog is long, and beyond the grace they would start their own segment.
"""
VARIABLES = {
    "TRACEWEIR_GRACE_S": f"{GRACE_S:g}",
    "TRACEWEIR_GUARD_S": f"{GUARD_S:g}",
    "TRACEWEIR_SCORE_TIMEOUT_S": "8",
}
LATE = 0.05
"""The share of sessions with a record that arrives after the session has closed, by kind of lateness."""


@dataclass(frozen=True)
class Outcome:
    """The result of a round."""

    scenario: Scenario
    faults: Mapping[str, int]
    """Number of faults that happened, by kind."""
    ends: Mapping[str, int]
    """How workers ended that the harness had not killed."""
    sent: Mapping[str, int]
    """Number of records by kind: `joined`, `duplicate`, `forwarded` (sent again as strays) and so on."""
    dead_lettered: int
    committed: Mapping[str, int]
    """Number of records by topic."""
    found: claims.Faults
    longest_pause_s: float
    """The longest time under load without an output, in seconds."""
    state_bytes: int
    """Size of the largest state directory when no record is in flight."""
    took_s: float

    def line(self) -> dict[str, Any]:
        """Returns the result as a line of the file of rounds."""
        scenario = self.scenario
        return {
            "seed": scenario.seed,
            "scenario": scenario.describe(),
            "faults": dict(self.faults),
            "ends": dict(self.ends),
            "sent": dict(self.sent),
            "dead_lettered": self.dead_lettered,
            "committed": dict(self.committed),
            "longest_pause_s": round(self.longest_pause_s, 1),
            "state_bytes": self.state_bytes,
            "took_s": round(self.took_s, 1),
            **{heading: sum(map(len, self.found.get(heading, {}).values())) for heading in claims.HEADINGS},
            "found": {
                heading: {claim: sentences[:3] for claim, sentences in group.items()}
                for heading, group in self.found.items()
            },
        }


def play(
    scenario: Scenario,
    bootstrap_servers: str,
    cluster: KafkaCluster | None,
    folder: Path,
    report_phase: Callable[[str], object] = lambda phase: None,
) -> Outcome:
    """Runs a round on its own topics, which are deleted afterwards.

    Args:
        scenario: The load and the faults.
        bootstrap_servers: The broker that the scenario names.
        cluster: The broker's nodes, if the round is allowed to kill them.
        folder: For state directories and logs; must be empty.
        report_phase: Called with a description of each phase of the round.
    """
    started = time.monotonic()
    prefix = f"chaos-{scenario.seed}-{os.urandom(3).hex()}."
    ledger = Ledger(
        scenario.seed,
        late=LATE,
        former=0.004,
        former_s=FORMER_S,
        unsteady=1.0,
        # A session that ends its process once and whose process a fault kills once would correctly be taken for poison.
        without=("kills-once",) if scenario.harms_scorers or scenario.poisonous else (),
        poisonous=scenario.poisonous,
        too_late_s=TOO_LATE_S,
    )
    config, variables = _configure(folder)
    once = scenario.broker == "kafka"
    with ExitStack() as stack:
        applications = _make_topics(bootstrap_servers, prefix, scenario)
        stack.callback(_delete_topics, bootstrap_servers, prefix)
        disk = stack.enter_context(SmallDisk(folder / "disk")) if scenario.small_disk else None
        committed = stack.enter_context(Committed(bootstrap_servers, prefix, *applications))
        fleet = stack.enter_context(Fleet(bootstrap_servers, prefix, folder, config, variables=variables))
        load = Load(ledger, bootstrap_servers, prefix, scenario.rate, idempotent=once)
        crew = Crew(fleet, scenario, cluster, disk)
        stack.callback(crew.release)
        pause_s = _run(load, crew, committed, ledger, report_phase)
        _rest(load, crew, committed, report_phase, once=once)
        if cluster is not None:
            cluster.wait()
        report_phase("auditing")
        evidence = Evidence(ledger, committed, json.loads(config.read_text()))
        crew.counters["stage raises"] = sum(worker.stumbles for worker in fleet.started)
        state_bytes = max(_size(worker.state_dir) for worker in fleet.started)
        fleet.end()
        if once:
            found = claims.faults(evidence, claims.EXACTLY_ONCE, *([claims.WITHIN_THE_GRACE] if LATE else []))
            report_phase("repeating the records without faults")
            unlike = _undisturbed(ledger, committed, bootstrap_servers, prefix, scenario, folder, config, variables)
            if unlike:
                found.setdefault(claims.DIFFERENT, {})["an_undisturbed_run_gives_the_same_scores"] = unlike
        else:
            found = claims.faults(evidence, claims.AT_LEAST_ONCE)
        return Outcome(
            scenario=scenario,
            faults=crew.counters,
            ends=crew.ends,
            sent=Counter({**ledger.sent, "records": load.sent}),
            dead_lettered=len(committed.rows["dead-letters"]),
            committed={topic: len(committed.rows[topic]) for topic in (*INPUTS, *OUTPUTS, CHANGELOG)},
            found=found,
            longest_pause_s=pause_s,
            state_bytes=state_bytes,
            took_s=time.monotonic() - started,
        )


def _configure(folder: Path) -> tuple[Path, dict[str, str]]:
    """Writes the config and the plug-in; returns the config's file and the workers' variables."""
    notes, plugins, config = folder / "notes", folder / "plugins", folder / "config.json"
    notes.mkdir()
    offer_plugin(plugins)
    criteria = {"tool_trajectory_avg_score": 0.5, "unsteady": {"threshold": 0.5, "notes": str(notes)}}
    gate = {"threshold": 0.65, "required": ["tool_trajectory_avg_score"], "cache_size": 120}
    config.write_text(json.dumps({"criteria": criteria, "gate": gate}))
    return config, VARIABLES | {"PYTHONPATH": str(plugins)}


def _run(load: Load, crew: Crew, committed: Committed, ledger: Ledger, report_phase: Callable[[str], object]) -> float:
    """Sends the load, injects the faults, and reads the output; returns the longest time without an output."""
    report_phase("waiting for the first scores")
    deadline = time.monotonic() + WARM_PATIENCE_S
    while len(committed.counted_partitions("assemble")) < PARTITIONS or not committed.rows["results"]:
        if time.monotonic() > deadline:
            raise RuntimeError(f"no worker published scores within {WARM_PATIENCE_S:g} s")
        load.go_on(STEP_S)
        crew.go_on(-1.0)
        committed.read(STEP_S)
    report_phase(f"under load for {crew.load_s:g} s")
    ledger.warm = True
    load.restart()
    longest_s, last, came_at = 0.0, _output(committed), time.monotonic()
    sent_until = 0.0
    while (passed_s := load.passed_s) < crew.load_s:
        load.go_on(passed_s - sent_until)
        sent_until = passed_s
        crew.go_on(passed_s)
        committed.read(STEP_S)
        now = time.monotonic()
        longest_s = max(longest_s, now - came_at)
        if (count := _output(committed)) > last:
            last, came_at = count, now
    load.finish()
    return longest_s


def _rest(load: Load, crew: Crew, committed: Committed, report_phase: Callable[[str], object], *, once: bool) -> None:
    """Reads until every record is accounted for, or until no record arrives; the audit reports what is missing."""
    came_at = time.monotonic()
    while time.monotonic() - came_at < PATIENCE_S:
        if committed.read(0.5):
            came_at = time.monotonic()
        calm = crew.calm(load.passed_s)
        arrived = sum(len(committed.rows[topic]) for topic in ("traces", "invocations")) == load.sent
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


def _undisturbed(
    ledger: Ledger,
    disturbed: Committed,
    bootstrap_servers: str,
    prefix: str,
    scenario: Scenario,
    folder: Path,
    config: Path,
    variables: Mapping[str, str],
) -> list[str]:
    """Returns the differences to the scores of an undisturbed run."""
    again = f"{prefix}again."
    settings = Settings(
        kafka_bootstrap_servers=bootstrap_servers, topic_prefix=again, replication_factor=scenario.nodes
    )
    create_topics(settings)
    count = copy_inputs(disturbed, bootstrap_servers, again)
    with (
        Committed(bootstrap_servers, again, application_id(again, STAGES)) as committed,
        Fleet(bootstrap_servers, again, folder, config, variables=variables) as fleet,
    ):
        fleet.start("undisturbed")
        came_at = time.monotonic()
        while time.monotonic() - came_at < PATIENCE_S:
            if committed.read(0.5):
                came_at = time.monotonic()
            arrived = sum(len(committed.rows[topic]) for topic in ("traces", "invocations")) == count
            if arrived and committed.is_at_rest() and not committed.read(1.0):
                break
        return list(differences(ledger, disturbed, committed))


def _make_topics(bootstrap_servers: str, prefix: str, scenario: Scenario) -> list[str]:
    """Returns the applications of the round."""
    settings = Settings(
        kafka_bootstrap_servers=bootstrap_servers, topic_prefix=prefix, replication_factor=scenario.nodes
    )
    sets: Sequence[Sequence[StageName]] = [[stage] for stage in STAGES] if scenario.split else [STAGES]
    for stages in sets:
        if wrong := create_topics(settings, stages).wrong:
            raise RuntimeError("\n".join(wrong))
    return [application_id(prefix, stages) for stages in sets]


def _delete_topics(bootstrap_servers: str, prefix: str) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0, "error_cb": lambda _: None})
    names = [name for name in client.list_topics(timeout=30).topics if name.startswith(prefix)]
    if names and not client.list_topics(timeout=30).cluster_id.startswith("mockCluster"):
        for future in client.delete_topics(names).values():
            future.exception(timeout=30)


def _output(committed: Committed) -> int:
    return sum(len(committed.rows[topic]) for topic in ("sessions", *OUTPUTS))


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) if folder.exists() else 0


def clear(folder: Path) -> None:
    """Removes the state directories of a round; keeps the logs."""
    for state in folder.glob("state-*"):
        shutil.rmtree(state, ignore_errors=True)
