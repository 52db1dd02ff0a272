"""Decides which metrics a refused record of a session leaves without a value: those that read what can have been in it."""

from __future__ import annotations

from traceweir.schemas.event_steps import event_steps
from traceweir.schemas.refused_record import TRACE, RefusedRecord
from traceweir.schemas.session import Session
from traceweir.scorers.base import Scorer, Subject
from traceweir.scorers.evaluation.outcome import Unmeasured

MAX_NAMED = 3
"""Maximum number of refused records that a rationale names."""


class RefusedRecords:
    """The refused records of a session that nothing makes up for."""

    def __init__(self, session: Session) -> None:
        self._refused = session.current_refused
        self._more = session.refused_more
        steps = event_steps(session.current_events)
        self._turns = {step.name: step.turn for step in steps if step.answer is None}
        """The turn of each invocation: an invocation can continue the turn of another one."""

    def __bool__(self) -> bool:
        return bool(self._refused or self._more)

    def outcome(self, scorer: Scorer, subject: Subject) -> Unmeasured | None:
        """Returns why a scorer has no value for a subject; None if no refused record can have had what it reads.

        A subject without an invocation and a trace is the session, or an aggregate of no invocation.
        """
        found = [each for each in self._refused if self._has_input(each, scorer, subject)]
        more = self._more if scorer.level != "trace" else 0
        if not (found or more):
            return None
        named = [each.sentence for each in found[:MAX_NAMED]]
        others = len(found) - len(named) + more
        if others:
            what = "record of the session was" if others == 1 else "records of the session were"
            named.append(f"{others} {'more ' if named else ''}{what} refused, see the dead letters")
        return Unmeasured("record_refused", "; ".join(named))

    def _has_input(self, refused: RefusedRecord, scorer: Scorer, subject: Subject) -> bool:
        if scorer.level == "trace":
            return refused.type == TRACE and subject.trace is not None and refused.trace_id == subject.trace.id
        invocation = subject.invocation
        if invocation is None:
            return bool(refused.parts & scorer.reads)
        if refused.type == TRACE:
            return invocation.derived and refused.trace_id == invocation.invocation_id
        if refused.invocation_id is None:
            missing = refused.parts
        elif self._turns.get(refused.invocation_id, refused.invocation_id) != invocation.invocation_id:
            return False
        elif refused.invocation_id in self._turns:
            missing = refused.parts
        else:
            # Nothing of the invocation is known.
            return True
        if subject.reference is not None:
            missing -= {"reference"}
        return bool(missing & scorer.reads)
