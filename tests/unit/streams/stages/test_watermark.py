"""The watermark of a partition survives a restart."""

from __future__ import annotations

from traceweir.streams.stages.watermark import Watermark


def test_a_watermark_that_has_seen_no_input_is_restored() -> None:
    first = Watermark()
    first.advance(1_000.0, {})
    second = Watermark()
    second.load({key: value or b"" for key, value in first.rows()})

    second.advance(1_001.0, {"topic": 0.0})

    assert second.at == first.at == 1_000_000


def test_a_restored_watermark_never_goes_back() -> None:
    first = Watermark()
    first.high["topic"] = 900_000
    first.advance(1_000.0, {})
    second = Watermark()
    second.load({key: value or b"" for key, value in first.rows()})

    second.advance(1_001.0, {"topic": 0.0})

    assert second.at == first.at == 1_000_000
    assert second.high == {"topic": 900_000}
