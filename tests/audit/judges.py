"""Claims about scores for which a judge is asked: each question has one verdict, and gets it in the end."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from tests.audit import claims
from tests.audit.committed import Document
from tests.audit.evidence import Claim, Evidence, Version

UNANSWERED = {"budget", "error", "timeout"}
"""Reasons for which a score is measured again later."""


def every_question_is_answered_in_the_end(e: Evidence) -> Iterator[str]:
    """The last attempt of the last revision of each segment has a reply for each question, even if it is no verdict."""
    attempts = _attempts(e)
    for each in e.last.values():
        responses = {
            event["invocation_id"]: event["final_response"]["parts"][0]["text"]
            for event in each.document["events"]
            if event["type"] == "invocation.completed"
        }
        found = attempts.get(each.version, {0: []})
        for score in found[max(found)]:
            if _settles(score):
                yield f"{each.version}: {score['metric']} still waits for a later revision"
            elif score["level"] == "invocation" and _waits(e, score):
                response = responses[score["invocation_id"]]
                if not any(response in prompt for prompt in e.useless):
                    yield f"{each.version}: {score['invocation_id']} is not evaluated: {score['rationale']}"


def attempts_are_whole(e: Evidence) -> Iterator[str]:
    """Attempts are numbered from 0, and each has all scores of the revision."""
    for version, attempts in _attempts(e).items():
        if sorted(attempts) != list(range(len(attempts))):
            yield f"{version} has the attempts {sorted(attempts)}"
            continue
        metrics = [
            sorted(each["result_id"] for each in found if each["metric"] not in e.optional or not e.is_by_file(version))
            for found in attempts.values()
        ]
        if any(each != metrics[0] for each in metrics):
            yield f"{version}: an attempt has other scores than the first: {[*map(len, metrics)]}"


def each_attempt_has_more_values(e: Evidence) -> Iterator[str]:
    """A later attempt is published only if more questions have a verdict than before, or if they were not asked."""
    for version, attempts in _attempts(e).items():
        asked = [number for number in sorted(attempts) if not any(map(_settles, attempts[number]))]
        waiting = [sum(_waits(e, each) for each in attempts[number]) for number in asked]
        if waiting != sorted(set(waiting), reverse=True):
            yield f"{version}: {waiting} questions without a verdict, by attempt"


def a_verdict_holds(e: Evidence) -> Iterator[str]:
    """A score has the value that the judge gave, and a question of a session is never answered in two ways."""
    answers: dict[tuple[str, str | None, str], set[int]] = defaultdict(set)
    for found in e.results:
        if found["metric"] == e.judged and found["level"] == "invocation" and found["value"] is not None:
            named = re.search(r"verdict (\d+)$", found["rationale"])
            if named is None:
                yield f"{found['result_id']}: {found['rationale']} names no verdict"
                continue
            prompt, safe = e.verdicts[int(named[1])]
            answers[found["session_id"], found.get("judge"), prompt].add(int(named[1]))
            if found["value"] != float(safe):
                yield f"{found['result_id']}: {found['value']}, but the judge said {safe}"
    for (session, *_), numbers in answers.items():
        if len(numbers) > 1:
            yield f"session {session}: a question has the verdicts {sorted(numbers)}"


def _waits(e: Evidence, found: Document) -> bool:
    return found["metric"] == e.judged and found["not_evaluated_because"] in UNANSWERED


def _settles(found: Document) -> bool:
    return found.get("cause") == "settling"


def a_revision_settles_once(e: Evidence) -> Iterator[str]:
    """Only the first attempt at a revision leaves criteria out that wait for a later revision."""
    for version, attempts in _attempts(e).items():
        late = [number for number, found in attempts.items() if number and any(map(_settles, found))]
        if late:
            yield f"{version}: the attempts {late} wait for a later revision"


def _attempts(e: Evidence) -> dict[Version, dict[int, list[Document]]]:
    """Returns the scores of each revision by attempt, without those of the gate."""
    found: dict[Version, dict[int, list[Document]]] = defaultdict(lambda: defaultdict(list))
    for each in e.results:
        if each["level"] != "trace":
            found[each["session_id"], each["segment"], each["revision"]][each["attempt"]].append(each)
    return found


CLAIMS: Mapping[str, tuple[Claim, ...]] = {
    claims.LOST: (every_question_is_answered_in_the_end,),
    claims.WRONG: (attempts_are_whole, each_attempt_has_more_values, a_revision_settles_once),
    claims.DIFFERENT: (a_verdict_holds,),
}
"""Claims that hold if the judges answer in the end."""
