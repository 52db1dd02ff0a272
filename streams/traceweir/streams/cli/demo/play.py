"""Runs the demo once: the broker, the worker, the agents that emit in real time, and the summary of the output."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
from confluent_kafka import KafkaError, Message, Producer

from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.streams.base.clock import seconds_now, utc_now
from traceweir.streams.base.setting_groups.group import ENV_PREFIX
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.demo.agents import JOINED, Emission
from traceweir.streams.cli.demo.fleet import SECRETS, Fleet, build_fleet
from traceweir.streams.cli.demo.interruption import Interrupted, Interruption
from traceweir.streams.cli.demo.ledger import CONFIG, Counts
from traceweir.streams.cli.demo.moment import DemoView, Moment
from traceweir.streams.cli.demo.observer import Observer
from traceweir.streams.cli.demo.summary import Summary, equations_of, observed_counts, redaction_of
from traceweir.streams.cli.demo.worker_process import WorkerProcess
from traceweir.streams.worker.kafka.client_options import IDEMPOTENT, confluent_options
from traceweir.streams.worker.kafka.embedded_broker import PARTITIONS, EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

START_WITHIN_S = 120.0
REST_WITHIN_S = 60.0
_TURN_S = 0.04
"""How long the observer waits for records before the agents can emit again, in seconds."""

Expect = Callable[[Sequence[Emission], Plan], Counts]
"""Returns the expected counts for the emitted records."""


class DemoError(RuntimeError):
    """The demo cannot continue; the message states the reason."""


def play(
    seed: int,
    seconds: float,
    *,
    keep: bool,
    expect: Expect,
    view: AbstractContextManager[DemoView],
    interruption: Interruption,
) -> Summary:
    """Runs the demo once, in real time; returns its summary.

    Raises:
        Interrupted: the user requested a stop; with `keep` a second time, because the first request ends the emission.
            The exception has the counts so far.
        DemoError: the worker does not start to read, or the broker refuses a record.
        WorkerEndedError: the worker ended by itself.
    """
    plan = read_plan(CONFIG)
    began = time.monotonic()
    with TemporaryDirectory(prefix="traceweir-demo-", ignore_cleanup_errors=True) as folder, EmbeddedBroker() as broker:
        interruption.check()
        config = Path(folder) / "config.json"
        environment = _environment(broker, Path(folder))
        config.write_bytes(orjson.dumps(CONFIG))
        settings = _settings(environment)
        create_topics(settings)
        interruption.check()
        with (
            WorkerProcess(config, Path(folder) / "worker.log", environment) as worker,
            Observer(settings) as observer,
            view as shown,
        ):
            stage = _Performance(settings, worker, observer, shown, interruption, allowed=1 if keep else 0)
            try:
                stage.run(_rounds(seed, seconds, keep=keep))
                worker_log = None if stage.rest() else worker.log_tail()
            except Interrupted:
                raise Interrupted({"records sent": len(stage.emitted), **observed_counts(observer.seen)}) from None
        return Summary(
            seed=seed,
            took_s=time.monotonic() - began,
            worker_log=worker_log,
            equations=equations_of(observer.seen, len(plan.metrics)),
            expected=expect(stage.emitted, plan),
            observed=observed_counts(observer.seen),
            redactions=[
                redaction_of(observer.seen, f"kp:trace:{one.session}", SECRETS)
                for one in stage.emitted
                if one.topic == "traces" and one.fate == JOINED and one.session in stage.with_secrets
            ],
        )


class _Performance:
    """Emits the agents' records, and updates the observer and the view."""

    def __init__(
        self,
        settings: Settings,
        worker: WorkerProcess,
        observer: Observer,
        view: DemoView,
        interruption: Interruption,
        allowed: int,
    ) -> None:
        self.emitted: list[Emission] = []
        self.with_secrets: set[str] = set()
        self._topics = settings.topics
        self._worker = worker
        self._observer = observer
        self._view = view
        self._interruption = interruption
        self._allowed = allowed
        self._producer = Producer({**confluent_options(settings), **IDEMPOTENT, "linger.ms": 5, "log_level": 0})
        self._refused: str | None = None
        self._began = time.monotonic()
        self._planned = 0

    def run(self, rounds: Iterator[Fleet]) -> None:
        """Emits round after round: waits until the worker reads all partitions, then emits the agents' records."""
        for fleet in rounds:
            self.with_secrets.add(fleet.session_with_secrets)
            self._planned += len(fleet.emissions)
            greetings = [one for one in fleet.emissions if one.due_s < 0]
            self._greet(greetings)
            self._work(fleet.emissions[len(greetings) :])
            if self._interruption.wanted:
                return

    def rest(self) -> bool:
        """Waits until no record is in flight; returns false if that takes longer than `REST_WITHIN_S`."""
        until = time.monotonic() + REST_WITHIN_S
        while not self._observer.seen.at_rest(len(self.emitted)):
            if time.monotonic() > until:
                return False
            self._turn("waiting for the last sessions to close")
        return True

    def _greet(self, greetings: Sequence[Emission]) -> None:
        for one in greetings:
            self._send(one)
        until = time.monotonic() + START_WITHIN_S
        while self._observer.seen.dead_letters_seen < len(greetings):
            self._turn("the worker starts", allowed=0)
            if time.monotonic() > until:
                raise DemoError(
                    f"the worker read nothing within {START_WITHIN_S:g} s; its log:\n{self._worker.log_tail()}"
                )

    def _work(self, emissions: Sequence[Emission]) -> None:
        began = time.monotonic()
        place = 0
        while place < len(emissions) and not self._interruption.wanted:
            while place < len(emissions) and emissions[place].due_s <= time.monotonic() - began:
                self._send(emissions[place])
                place += 1
            self._turn("the agents work")

    def _send(self, one: Emission) -> None:
        self._producer.produce(**one.record(self._topics, seconds_now()), on_delivery=self._delivered)
        self.emitted.append(one)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._refused = error.str()

    def _turn(self, phase: str, allowed: int | None = None) -> None:
        self._interruption.check(self._allowed if allowed is None else allowed)
        self._worker.check()
        self._producer.poll(0)
        if self._refused is not None:
            raise DemoError(f"the embedded broker refused a record: {self._refused}")
        self._observer.poll(_TURN_S)
        moment = Moment(time.monotonic() - self._began, phase, len(self.emitted), self._planned)
        self._view.update(moment, self._observer.seen)


def _rounds(seed: int, seconds: float, *, keep: bool) -> Iterator[Fleet]:
    for number in count() if keep else (0,):
        yield build_fleet(seed, seconds, utc_now(), number)


def _environment(broker: EmbeddedBroker, folder: Path) -> dict[str, str]:
    """Returns the worker's settings, with gaps so short that a viewer sees sessions close."""
    return {
        f"{ENV_PREFIX}{name.upper()}": value
        for name, value in {
            "kafka_bootstrap_servers": broker.bootstrap_servers,
            "partitions": str(PARTITIONS),
            "state_dir": str(folder / "state"),
            "checkpoint_interval_s": "0.1",
            "idle_gap_s": "4",
            "close_linger_s": "2",
            "embedder": "hashing",
            "web_port": "0",
        }.items()
    }


def _settings(environment: dict[str, str]) -> Settings:
    """Returns the same settings for this process. Ignores its environment, which can name another broker."""
    defaults = {name: field.get_default() for name, field in Settings.model_fields.items()}
    ours = {name.removeprefix(ENV_PREFIX).lower(): value for name, value in environment.items()}
    return Settings(**(defaults | ours))
