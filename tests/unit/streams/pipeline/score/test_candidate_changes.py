"""Tests which candidates of a session are new or changed, and the rows that store earlier candidates."""

from __future__ import annotations

import pytest

from traceweir.streams.pipeline.score.candidate_changes import CandidateChanges
from traceweir.streams.scoring.sessions.result import OfferedCandidate, ScoringResult

LAST_RECORD_MS = 1_767_225_500_000
KEY = b"ts\x00\x00\x00\x01"
FORMAT_1 = b"\x01\x00\x00\x01\x9bv\xd9!`\x00\x00\x00\x0211111111111111112222222222222222"
"""A row in format 1, the format before attempts were added."""


def candidate(digest: bytes) -> OfferedCandidate:
    return OfferedCandidate("scope", b"1" * 16, digest * 16, b"")


def changed(changes: CandidateChanges, digest: bytes, revision: int, attempt: int = 0) -> bool:
    offered = [candidate(digest)]
    result = ScoringResult(1, revision, attempt, LAST_RECORD_MS, [], offered, {})
    return bool(changes.changed(b"s", result, LAST_RECORD_MS, offered))


def restarted(rows: dict[bytes, bytes]) -> CandidateChanges:
    changes = CandidateChanges(1_000)
    changes.load(rows)
    return changes


def test_attempt_0_writes_a_row_in_format_1() -> None:
    changes = CandidateChanges(1_000)
    assert changed(changes, b"2", revision=2)
    assert changes.rows() == [(KEY, FORMAT_1)]


@pytest.mark.parametrize(("digest", "is_changed"), [(b"2", False), (b"3", True)])
def test_a_row_in_format_1_is_read_as_attempt_0(digest: bytes, is_changed: bool) -> None:
    assert changed(restarted({KEY: FORMAT_1}), digest, revision=2, attempt=1) is is_changed


def test_an_earlier_attempt_is_published_and_does_not_replace_the_stored_candidate() -> None:
    changes = CandidateChanges(1_000)
    changed(changes, b"2", revision=2, attempt=0)
    changed(changes, b"3", revision=2, attempt=2)
    rows = {key: row for key, row in changes.rows() if row is not None}
    for each in (changes, restarted(rows)):
        assert changed(each, b"3", revision=2, attempt=1)
        assert changed(each, b"2", revision=2, attempt=0)
        assert not changed(each, b"3", revision=3)


def test_a_row_of_a_later_version_is_refused() -> None:
    with pytest.raises(ValueError, match="has the format 3; this version reads the formats 1 and 2"):
        restarted({KEY: b"\x03" + FORMAT_1[1:]})
