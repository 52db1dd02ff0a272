"""Runs the demo once: the broker, the worker, the agents that send in real time, and the summary of the output."""

from __future__ import annotations

import os
import queue
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.clock import seconds_now, utc_now
from traceweir.streams.base.setting_groups.group import ENV_PREFIX
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.demo.fleet import SECRETS, Fleet, build_fleet
from traceweir.streams.cli.demo.interruption import Interrupted, Interruption
from traceweir.streams.cli.demo.ledger import CONFIG, Counts
from traceweir.streams.cli.demo.observer import Observer
from traceweir.streams.cli.demo.outlet import Outlet, Schedule
from traceweir.streams.cli.demo.sessions import DUPLICATE, JOINED, Emission
from traceweir.streams.cli.demo.summary import IDLE_GAP_S, Redaction, Summary
from traceweir.streams.cli.demo.view import DemoView, Moment
from traceweir.streams.cli.parts import CommandProcess, Line, stop, waiting
from traceweir.streams.worker.kafka.embedded_broker import PARTITIONS, EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

START_WITHIN_S = 120.0
REST_WITHIN_S = 60.0
_TURN_S = 0.04
"""How long the observer waits for records before the agents can send again, in seconds."""
_LOG_LINES = 40

Expect = Callable[[Sequence[Emission], Mapping[str, Counts]], Counts]
"""Returns the expected counts of the sent records, from the outcomes of their sessions."""


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
        Interrupted: the user requested a stop; with `keep` a second time, because the first request only begins no
            further session. The exception has the counts so far.
        DemoError: the worker does not start to read or has ended, or the broker refuses a record.
    """
    began = time.monotonic()
    with TemporaryDirectory(prefix="traceweir-demo-", ignore_cleanup_errors=True) as folder, EmbeddedBroker() as broker:
        interruption.check()
        config = Path(folder) / "config.json"
        config.write_bytes(orjson.dumps(CONFIG))
        ours = _settings(broker, Path(folder))
        # Ignores the environment, which can name another broker.
        settings = Settings(**({name: each.get_default() for name, each in Settings.model_fields.items()} | ours))
        create_topics(settings)
        others = {name: value for name, value in os.environ.items() if not name.startswith(ENV_PREFIX)}
        environment = others | {f"{ENV_PREFIX}{name.upper()}": value for name, value in ours.items()}
        lines: queue.SimpleQueue[Line] = queue.SimpleQueue()
        interruption.check()
        worker = CommandProcess("worker", ["worker", "--config", str(config)], environment, lines)
        try:
            with Observer(settings, len(read_plan(CONFIG).metrics)) as observer, view as shown:
                stage = _Stage(Outlet(settings), worker, lines, observer, shown, interruption, 1 if keep else 0)
                for number in count() if keep else (0,):
                    stage.perform(build_fleet(seed, seconds, utc_now(), number))
                    if interruption.wanted:
                        break
                in_time = stage.rest()
        except Interrupted:
            raise Interrupted({"records sent": len(stage.sent), **observer.seen.counts}) from None
        finally:
            stop([worker])
    seen = observer.seen
    return Summary(
        seed=seed,
        took_s=time.monotonic() - began,
        worker_log=None if in_time else stage.log_tail(),
        equations=seen.equations(len(stage.sent)),
        expected=expect(stage.sent, stage.outcomes),
        observed=seen.counts,
        redactions=[
            Redaction.of(f"kp:trace:{one.session}", seen.network, SECRETS)
            for one in stage.sent
            if one.topic == "traces" and one.fate == JOINED and one.session in stage.with_secrets
        ],
        late_s=stage.schedule.latest_s,
    )


class _Stage:
    """Sends the agents' records, and updates the observer and the view."""

    def __init__(
        self,
        outlet: Outlet,
        worker: CommandProcess,
        lines: queue.SimpleQueue[Line],
        observer: Observer,
        view: DemoView,
        interruption: Interruption,
        allowed: int,
    ) -> None:
        self.sent: list[Emission] = []
        self.outcomes: dict[str, Counts] = {}
        self.with_secrets: set[str] = set()
        self.schedule = Schedule()
        self._outlet = outlet
        self._worker = worker
        self._lines = lines
        self._observer = observer
        self._view = view
        self._interruption = interruption
        self._allowed = allowed
        self._log: deque[str] = deque(maxlen=_LOG_LINES)
        self._began = time.monotonic()
        self._planned = 0

    def perform(self, fleet: Fleet) -> None:
        """Sends the records of a round, after the greetings have come back: the worker then reads all partitions."""
        self.outcomes |= fleet.outcomes
        self.with_secrets.add(fleet.session_with_secrets)
        self._planned += len(fleet.emissions)
        greetings = [one for one in fleet.emissions if one.due_s < 0]
        for one in greetings:
            self._send(one)
        until = time.monotonic() + START_WITHIN_S
        while self._observer.seen.dead_letters < len(greetings):
            self._turn("the worker starts", allowed=0)
            if time.monotonic() > until:
                raise DemoError(f"the worker read nothing within {START_WITHIN_S:g} s; its log:\n{self.log_tail()}")
        begun: set[str] = set()
        for record in self._on_time(fleet.emissions[len(greetings) :]):
            # After Ctrl-C, only the sessions that have begun come to their end.
            if not self._interruption.wanted or (record.fate in (JOINED, DUPLICATE) and record.session in begun):
                begun.add(record.session)
                self._send(record)

    def rest(self) -> bool:
        """Waits until no record is in flight; returns false if that takes longer than `REST_WITHIN_S`."""
        until = time.monotonic() + REST_WITHIN_S
        while not all(each.holds for each in self._observer.seen.equations(len(self.sent))):
            if time.monotonic() > until:
                return False
            self._turn("waiting for the last sessions to close")
        return True

    def log_tail(self) -> str:
        """Returns the last lines of the worker's log."""
        self._log.extend(line.text for line in waiting(self._lines))
        return "\n".join(self._log) or "(empty)"

    def _on_time(self, emissions: Sequence[Emission]) -> Iterator[Emission]:
        for one in self.schedule.on_time(emissions):
            if one is None:
                self._turn("the agents work")
            else:
                yield one

    def _send(self, one: Emission) -> None:
        self._outlet.send([one], seconds_now())
        self.sent.append(one)

    def _turn(self, phase: str, allowed: int | None = None) -> None:
        self._interruption.check(self._allowed if allowed is None else allowed)
        self._log.extend(line.text for line in waiting(self._lines))
        if (code := self._worker.process.poll()) is not None:
            raise DemoError(f"the worker ended with exit code {code}; the end of its log:\n{self.log_tail()}")
        self._outlet.wait(0.0)
        if self._outlet.problem:
            raise DemoError(self._outlet.problem)
        self._observer.poll(_TURN_S)
        moment = Moment(time.monotonic() - self._began, phase, len(self.sent), self._planned)
        self._view.update(moment, self._observer.seen)


def _settings(broker: EmbeddedBroker, folder: Path) -> dict[str, str]:
    """Returns the settings that are not defaults, with gaps so short that a viewer sees sessions close."""
    return {
        "kafka_bootstrap_servers": broker.bootstrap_servers,
        "partitions": str(PARTITIONS),
        "state_dir": str(folder / "state"),
        "checkpoint_interval_s": "0.1",
        "idle_gap_s": f"{IDLE_GAP_S:g}",
        "close_linger_s": "2",
        "embedder": "hashing",
        "web_port": "0",
    }
