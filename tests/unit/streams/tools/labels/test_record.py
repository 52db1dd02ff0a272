"""A label of a time that has not come does not count: it would be the latest of its annotator for good."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from tests.support.anchors import label, subject
from tests.support.scoring import NOW

from traceweir.streams.tools.labels.record import label_of_record

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("written_min", "read_min"),
    [(60, 0), (0, 60), (None, 0)],
    ids=["by the reader", "by the record", "no timestamp"],
)
def test_a_label_ahead_of_one_of_the_clocks_is_refused_with_both(written_min: int | None, read_min: int) -> None:
    """The writer's clock mostly gives both the label and the record their times."""
    written_ms = -1 if written_min is None else int((NOW + written_min * MINUTE).timestamp() * 1000)
    now = NOW + read_min * MINUTE
    wrong = label(subject("s"), occurred_at=NOW + 6 * MINUTE)
    with pytest.raises(ValueError, match="is more than 5 minutes ahead: the record") as raised:
        label_of_record(wrong.label_id.encode(), wrong.wire(), written_ms, now)
    assert re.search(f"read at {now:%Y-%m-%dT%H:%M:%S}.*; correct the wrong one", str(raised.value))
    near = label(subject("s"), occurred_at=NOW + 5 * MINUTE)
    assert label_of_record(near.label_id.encode(), near.wire(), written_ms, now) == near
