"""Makes references of the cases of eval sets, so that live sessions are compared with them; says what is ambiguous."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from traceweir.schemas.eval_set import EvalCase
from traceweir.schemas.figures import counted
from traceweir.schemas.reference import CASE_LABEL, Reference, case_reference_id, normalised_question
from traceweir.schemas.text import printable
from traceweir.streams.lab.evals.configs import clashing
from traceweir.streams.lab.evals.files import EvalFile, listed


@dataclass(frozen=True)
class CaseReferences:
    """The records of eval sets for the topic `references`."""

    records: Mapping[str, Reference | None]
    """The reference of each turn by its reference id; None removes a turn that an earlier push can have written."""
    cases: int
    """Number of cases with a conversation."""
    notes: tuple[str, ...]
    """A sentence for whatever a live session cannot be compared with, or only in one way."""


def references_of(files: Sequence[EvalFile], app: str | None = None) -> CaseReferences:
    """Returns the references of the selected cases.

    Each turn of a case has the reference that `traceweir eval` compares with. Only the question of a case with one turn
    is looked up in live sessions, because a later turn depends on those before it.

    Args:
        files: The eval sets.
        app: The app in which questions are looked up; None: the app of each case.

    Raises:
        InputError: two files have a case with the same eval id.
    """
    clashing([(file.path, case.eval_id) for file in files for case in file.cases])
    cases = [case for file in files for case in file.cases]
    conversations = [case for case in cases if case.conversation]
    ambiguous = _ambiguous(conversations, app)
    records: dict[str, Reference | None] = {}
    for case in conversations:
        by_question = len(case.conversation or ()) == 1 and case.eval_id not in ambiguous
        for number, reference in enumerate(_turns(case)):
            if by_question:
                reference = reference.model_copy(update={"app_name": _app_of(case, app), "question": _question(case)})
            records[case_reference_id(case.eval_id, number)] = reference
        records[case_reference_id(case.eval_id, len(case.conversation or ()))] = None
    return CaseReferences(records, len(conversations), tuple(_notes(cases, conversations, ambiguous, app)))


def _turns(case: EvalCase) -> Iterator[Reference]:
    for number, turn in enumerate(case.conversation or ()):
        yield turn.reference.model_copy(update={"rubrics": case.rubrics_of(number) or None})


def _question(case: EvalCase) -> str:
    return case.conversation[0].user_content.text if case.conversation else ""


def _app_of(case: EvalCase, app: str | None) -> str | None:
    return app or (case.session_input.app_name if case.session_input else None) or None


def _ambiguous(cases: Sequence[EvalCase], app: str | None) -> dict[str, tuple[str, ...]]:
    """Returns the cases whose question another case of the app asks and answers otherwise, each with all of these cases."""
    asking: dict[tuple[str | None, str], list[EvalCase]] = defaultdict(list)
    for case in cases:
        if len(case.conversation or ()) == 1:
            asking[_app_of(case, app), normalised_question(_question(case))].append(case)
    found: dict[str, tuple[str, ...]] = {}
    for same in asking.values():
        expected = [list(_turns(case)) for case in same]
        if any(each != expected[0] for each in expected):
            names = tuple(case.eval_id for case in same)
            found |= dict.fromkeys(names, names)
    return found


def _notes(
    cases: Sequence[EvalCase],
    conversations: Sequence[EvalCase],
    ambiguous: Mapping[str, tuple[str, ...]],
    app: str | None,
) -> Iterator[str]:
    named = f"a session with the label `{CASE_LABEL}` or the session id of the case"
    for same in dict.fromkeys(ambiguous.values()):
        yield (
            f"cases {listed(same)} ask the same question and expect different answers, so the question alone selects none "
            f"of them: {named} is compared"
        )
    if several := [case for case in conversations if len(case.conversation or ()) > 1]:
        verb = "has" if len(several) == 1 else "have"
        yield (
            f"{counted(len(several), 'case')} {verb} several turns ({listed([case.eval_id for case in several])}), so no "
            f"question selects them: {named} is compared if it has as many invocations, turn by turn"
        )
    if scenarios := [case.eval_id for case in cases if not case.conversation]:
        yield f"{listed(scenarios)}: without a conversation there is nothing to compare a live session with"
    apps = {_app_of(case, app) for case in conversations if len(case.conversation or ()) == 1} - {None}
    if apps and app is None:
        shown = ", ".join(printable(str(each), 80) for each in sorted(map(str, apps)))
        yield (
            f"questions are looked up in sessions of the app {shown}, the app of the eval set; --app names another one, "
            "such as the OTEL_SERVICE_NAME of the agent"
        )
