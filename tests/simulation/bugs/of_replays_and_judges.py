"""Bugs of replays of dead letters, and of judges and their retries."""

from __future__ import annotations

from itertools import count
from typing import Any

from tests.simulation.bugs.registry import bug, bug_of_higher_seeds, put
from tests.simulation.world import World

from traceweir.streams.pipeline.score.judge_retries import JudgeRetries
from traceweir.streams.pipeline.score.judge_rows import JudgeRows
from traceweir.streams.pipeline.score.session_configs import SessionConfigs
from traceweir.streams.pipeline.score.stage import ScoreStage
from traceweir.streams.scoring.isolation.in_flight import ScoringInFlight
from traceweir.streams.scoring.judges.session_judge import SessionJudge
from traceweir.streams.tools.dead_letters import replay
from traceweir.streams.tools.dead_letters.replay import _Sender
from traceweir.streams.worker.runtime.delivery import Transaction

# Replays of dead letters


@bug_of_higher_seeds
def replays_do_not_fence_each_other(world: World) -> None:
    """Each replay has a transactional id of its own."""
    numbers = count()

    def alone(options: Any, name: str, **named: Any) -> Transaction:
        return Transaction(options, f"{name}-{next(numbers)}", **named)

    put(replay, "Transaction", alone)


@bug
def marks_of_replays_come_in_another_transaction(world: World) -> None:
    """Records are committed before the marks that say so."""
    init = _Sender.__init__

    def apart(self: Any, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        self._transactions = False

    put(_Sender, "__init__", apart)


@bug_of_higher_seeds
def replay_reads_the_marks_before_it_fences(world: World) -> None:
    """A replay starts its producer after it has read which dead letters were replayed."""
    send = _Sender.send

    async def late(self: Any) -> Any:
        if not getattr(self, "started", False):
            self.started = True
            await self._delivery.start()
        return await send(self)

    async def nothing(self: Any) -> None:
        """Starts later."""

    put(_Sender, "start", nothing)
    put(_Sender, "send", late)


# Judges


@bug
def retries_are_not_restored(world: World) -> None:
    """After a restart no session waits for a judge."""
    put(JudgeRetries, "load", lambda self, rows: None)


@bug
def verdicts_are_not_restored(world: World) -> None:
    """After a restart each question is asked again."""
    put(JudgeRows, "load", lambda self, rows: None)


@bug
def verdicts_are_not_stored(world: World) -> None:
    """A verdict is used and not stored."""
    put(JudgeRows, "known", lambda self, session: [])
    put(JudgeRows, "rows", lambda self: [])


@bug
def unsuccessful_retry_is_the_last(world: World) -> None:
    """A session whose judge fails twice is given up."""
    retried = JudgeRetries.retried

    def hasty(self: Any, row_key: bytes, unanswered: int, *, published: bool) -> None:
        retried(self, row_key, unanswered if published else 0, published=published)

    put(JudgeRetries, "retried", hasty)


@bug
def retry_publishes_the_attempt_of_before(world: World) -> None:
    """A retry has the attempt number of the scores that it replaces."""
    scoring_at = SessionConfigs.scoring_at

    async def of_before(self: Any, offset: int) -> Any:
        scoring = await scoring_at(self, offset)

        async def score(raw: bytes, known: Any = (), attempt: int = 0, /) -> Any:
            return await scoring(raw, known, max(0, attempt - 1))

        return score

    put(SessionConfigs, "scoring_at", of_before)


@bug
def retry_publishes_without_a_new_value(world: World) -> None:
    """A retry publishes its scores whether or not more of them have a value."""
    again = ScoreStage._score_again

    async def always(self: Any, row_key: bytes, pending: Any, record: Any, regates: bool) -> None:
        pending = pending.__class__(*(getattr(pending, name) for name in pending.__struct_fields__[:5]), 1_000, 50)
        await again(self, row_key, pending, record, regates)

    put(ScoreStage, "_score_again", always)


@bug
def scoring_of_a_former_owner_is_taken_as_it_is(world: World) -> None:
    """A scoring that began before the session knew a verdict is taken, although it has asked the same question again."""
    put(ScoringInFlight, "agrees", lambda self, known: True)


@bug
def replies_without_a_verdict_are_waited_for(world: World) -> None:
    """A session whose judge has replied without a verdict is scored again, and reads the stored reply each time."""
    init = SessionJudge.__init__

    def fail(self: Any, *args: Any) -> None:
        init(self, *args)
        self.failed = True

    put(SessionJudge, "__init__", fail)
