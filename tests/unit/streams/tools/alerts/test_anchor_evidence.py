"""Whatever happens while anchors are read, the watch of alerts goes on, and the log says why nothing is known of them."""

from __future__ import annotations

from datetime import datetime

import pytest
from tests.support.anchors import CRITERION, verdict
from tests.support.scoring import NOW

from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.alerts.anchor_evidence import read_evidence
from traceweir.streams.tools.anchors.reading import AnchorReader
from traceweir.streams.tools.anchors.topics import AnchorsError
from traceweir.streams.tools.anchors.watch import AnchorWatch, SeenVerdict


class Reader(AnchorReader):
    """Gives an answer, or fails."""

    def __init__(self, answer: AnchorWatch | Exception) -> None:
        super().__init__(Settings())
        self._answer = answer

    async def watch(self, now: datetime) -> AnchorWatch:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (AnchorsError("the topic is missing\x1b"), "the topic is missing\\x1b"),
        (OSError(), "OSError()"),
        (KeyError("x"), "a fault of Traceweir: KeyError('x')"),
    ],
)
async def test_an_error_of_reading_ends_nothing(error: Exception, said: str, caplog: pytest.LogCaptureFixture) -> None:
    assert await read_evidence(Reader(error)) is None
    assert caplog.messages == [f"the verdicts on anchors cannot be read: {said}"]


async def test_the_judge_of_each_criterion_is_evidence() -> None:
    watch = AnchorWatch()
    watch.add(SeenVerdict.of(verdict("a", due_at=NOW)))
    found = await read_evidence(Reader(watch))
    assert found is not None
    assert found[CRITERION].judge is watch.criteria[CRITERION].judge
