"""Tests what the benchmark of distant workers reads from their logs."""

from __future__ import annotations

from benchmarks.distant_takeover import since_loss


def test_lines_from_before_the_loss_do_not_count() -> None:
    before = "the partitions are dropped\n"
    logs = {"a": f"{before}stopped taking over", "b": "took over", "successor": "member_id was not recognized\n"}
    found = since_loss(logs, {"a": len(before), "b": 0})
    assert found.split("\n") == ["stopped taking over", "took over", "member_id was not recognized", ""]
