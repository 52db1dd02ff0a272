"""What is written about a score that a target has not taken."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.support.results import make_score
from tests.support.scoring import NOW

from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.export.answers import Later, Refused
from traceweir.streams.tools.export.not_taken import NotTaken
from traceweir.streams.tools.export.problems import Problems
from traceweir.streams.tools.export.undelivered import Undelivered
from traceweir.streams.tools.results.reader import FoundScore


def found(offset: int) -> FoundScore:
    score = make_score()
    return FoundScore(1_000, 0, offset, score, score.wire())


@pytest.mark.parametrize("answers", [[], [Later("busy")], [Refused("bad")], [Later("busy"), Refused("bad")]])
def test_nothing_is_written_about_scores_that_have_moved_while_they_were_sent(
    answers: Sequence[Later | Refused],
) -> None:
    undelivered = Undelivered(Settings(), "hook", Problems("results", lambda: 0.0), lambda: NOW)
    undelivered.settle_new([], [found(1), found(2)])
    due = undelivered.due(10)
    undelivered.forget()
    not_taken = [NotTaken(each.found, answer) for each, answer in zip(due, answers, strict=False)]
    assert undelivered.settle_due(due, not_taken) == []
    assert len(due) == 2
