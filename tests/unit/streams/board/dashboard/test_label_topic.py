"""A label does not wait without an end for the labels before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from traceweir.schemas.labels import Label
from traceweir.streams.base.errors import NotReadyError
from traceweir.streams.base.settings import Settings
from traceweir.streams.board.dashboard import label_topic


def test_a_label_behind_one_that_kafka_does_not_accept_is_refused_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = label_topic.LabelTopic(Settings())
    sentences: list[str] = []

    def write_another(writer: Any, labels: Sequence[Label]) -> None:
        with pytest.raises(NotReadyError) as refused:
            topic.write(labels)
        sentences.append(str(refused.value))

    monkeypatch.setattr(label_topic, "ANSWER_WITHIN_S", 0.001)
    monkeypatch.setattr(label_topic, "write_labels", write_another)
    topic.write([])
    topic.write([])
    assert sentences == ["Kafka has not accepted the labels before this one yet. Send it again"] * 2
