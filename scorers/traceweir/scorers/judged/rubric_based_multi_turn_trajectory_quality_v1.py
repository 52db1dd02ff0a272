"""Measures the quality of the agent's conduct in a session: the share of the rubrics that it meets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import Rubric
from traceweir.schemas.reasoning_parts import invocation_with_reasoning
from traceweir.scorers.base import Measurement, Subject, turns_of_session
from traceweir.scorers.judged.dialogue import Dialogue, dialogue_of
from traceweir.scorers.judged.fitting import FittedPrompt
from traceweir.scorers.judged.rubric_replies import rubrics_answer
from traceweir.scorers.judged.rubrics import RubricBased, checked_rubrics, rubrics_measurement, rubrics_of_type
from traceweir.scorers.judged.session_rating import TURNS, require_parts, session_texts
from traceweir.scorers.judged.turns_of_verdicts import turn_details, unknown_turns_text
from traceweir.scorers.judged.vote import Poll, Tally


class RubricBasedTrajectoryQuality(RubricBased):
    """Returns the share of the rubrics that the agent's conduct in the session meets, from 0 to 1.

    The judge reads the whole dialogue, with the tool calls and their results, and the agent's instructions and tools.
    Rubrics of all invocations and their references count if their type is `TRAJECTORY_QUALITY`; with `compat: "adk"`
    those of the last invocation only, as in Google ADK. `details.rubrics` has for each rubric the ids of the
    invocations on which its verdict rests, in `turns`; `details.turns` has those of the unmet rubrics. This is
    `rubric_based_multi_turn_trajectory_quality_v1` of Google ADK 2.13, with Traceweir's own prompt.

    >>> RubricBasedTrajectoryQuality.level, RubricBasedTrajectoryQuality().rubric_type
    ('session', 'TRAJECTORY_QUALITY')
    """

    metric = "rubric_based_multi_turn_trajectory_quality_v1"
    version = "1"
    level = "session"
    dialogue_block = "dialogue"
    rubric_type = "TRAJECTORY_QUALITY"

    def applicable(self, subject: Subject) -> list[Rubric]:
        """Returns the rubrics of the criterion, and those of the session with this `rubric_type`.

        Raises:
            MissingInput: the session has no invocation.
            ValueError: two rubrics share an id, or a rubric has no id or no text.
        """
        turns = turns_of_session(subject)
        found = [("the criterion", rubric) for rubric in self.rubrics]
        own: list[Rubric] = []
        for turn in turns if self.compat is None else turns[-1:]:
            for holder in (turn.invocation, turn.reference):
                # An eval case copies its rubrics to each of its invocations; equal rubrics are not a conflict.
                own += [rubric for rubric in rubrics_of_type(self.rubric_type, holder) if rubric not in own]
        return checked_rubrics([*found, *(("the session", rubric) for rubric in own)])

    @property
    def without_rubrics(self) -> str:
        """Why there is no value if no rubric applies."""
        return (
            "no rubric applies: the criterion has no rubrics, and no invocation or reference of the session has "
            f"a rubric of type {self.rubric_type}"
        )

    def answer_schema(self, rubrics: Sequence[Rubric]) -> JsonObject:
        """Returns the JSON Schema of an answer about these rubrics, with the turns of each verdict."""
        return rubrics_answer(rubrics, turns=TURNS)

    def dialogue(self, subject: Subject) -> Dialogue:
        """Returns what was said and done in the session, with reasoning if `compat` asks for it."""
        turns = subject.turns
        if self.compat is not None:
            turns = [replace(turn, invocation=invocation_with_reasoning(turn.invocation)) for turn in turns]
        return dialogue_of(turns, subject.session, whole=2)

    def prompt_data(self, subject: Subject) -> dict[str, str]:
        """Returns the instructions and the tools."""
        require_parts(subject.turns, ("calls",))
        return session_texts(subject)

    def measurement(self, poll: Poll, fitted: FittedPrompt, subject: Subject) -> Measurement:
        """Returns the share of the rubrics that are met, with the turns on which the verdicts rest."""

        def turns_of(*tallies: Tally) -> JsonObject:
            return turn_details([vote for tally in tallies if (vote := tally.deciding) is not None], subject.turns)

        measured = rubrics_measurement(poll, fitted, turns_of)
        found = turns_of(*(tally for tally in poll.tallies.values() if tally.verdict is False))
        return replace(
            measured,
            rationale=measured.rationale + unknown_turns_text(found),
            details={**found, **measured.details},
        )
