"""Each kind of store keeps of each result what counts, however often and in what order its records come."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import orjson
import pytest
from tests.support.judge_retries import session as session_document
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, OpenStore, batch_of, figures, recomputed_figures, scores_batch

from traceweir.schemas.dead_letter import REPLAYED, DeadLetter
from traceweir.schemas.score import Cost, Score, reported_status
from traceweir.streams.board.store import duckdb_store
from traceweir.streams.board.store.errors import StoreLostError
from traceweir.streams.board.store.opening import Store
from traceweir.streams.board.store.rows import Batch, SourcePartition

pytestmark = pytest.mark.slow


def values(open_store: OpenStore, table: str = "results") -> list[tuple[object, ...]]:
    store = open_store()
    try:
        found = store.query(f"SELECT session_id, revision, attempt, value FROM {table} ORDER BY ALL")
        return [tuple(row.values()) for row in found]
    finally:
        store.close()


def write(open_store: OpenStore, *batches: Batch) -> None:
    store = open_store()
    try:
        for batch in batches:
            store.write(batch)
    finally:
        store.close()


def test_a_higher_revision_replaces_a_result_and_the_replaced_one_is_kept_as_history(open_store: OpenStore) -> None:
    write(
        open_store,
        scores_batch(make_score("a", value=0.2)),
        scores_batch(make_score("a", value=0.9, revision=1), offset=1),
    )

    assert values(open_store) == [("a", 1, 0, 0.9)]
    assert values(open_store, "replaced_results") == [("a", 0, 0, 0.2)]


def test_the_cause_of_a_missing_value_is_a_column_and_stays_with_a_replaced_result(open_store: OpenStore) -> None:
    missing: dict[str, Any] = {"value": None, "not_evaluated_because": "error"}
    write(
        open_store,
        scores_batch(make_score("a", cause="too_long", **missing)),
        scores_batch(make_score("a", cause="judge_refused", revision=1, **missing), offset=1),
    )

    store = open_store()
    try:
        assert store.query("SELECT cause FROM results") == [{"cause": "judge_refused"}]
        assert store.query("SELECT cause FROM replaced_results") == [{"cause": "too_long"}]
    finally:
        store.close()


def test_a_lower_revision_that_arrives_later_changes_nothing(open_store: OpenStore) -> None:
    write(
        open_store,
        scores_batch(make_score("a", value=0.9, attempt=2)),
        scores_batch(make_score("a", value=0.2, attempt=1), offset=1),
    )

    assert values(open_store) == [("a", 0, 2, 0.9)]
    assert [each["value_sum"] for each in figures(open_store())] == [0.9]


def test_the_last_of_equal_versions_in_one_batch_counts(open_store: OpenStore) -> None:
    write(open_store, scores_batch(make_score("a", value=0.1), make_score("a", value=0.3), make_score("b", value=0.5)))

    assert values(open_store) == [("a", 0, 0, 0.3), ("b", 0, 0, 0.5)]
    assert [each["value_sum"] for each in figures(open_store())] == [0.8]


def test_a_result_that_is_computed_again_with_the_same_version_replaces_the_former(open_store: OpenStore) -> None:
    write(
        open_store,
        scores_batch(make_score("a", value=0.1), make_score("b", value=0.5)),
        scores_batch(make_score("a", value=0.3), offset=2),
    )

    assert values(open_store) == [("a", 0, 0, 0.3), ("b", 0, 0, 0.5)]
    assert [(each["n"], each["value_sum"]) for each in figures(open_store())] == [(2, 0.8)]


def test_a_forged_score_of_another_session_does_not_replace_a_result(open_store: OpenStore) -> None:
    original = make_score("a", value=0.2)
    write(
        open_store,
        scores_batch(original),
        scores_batch(original.model_copy(update={"session_id": "b", "revision": 9}), offset=1),
    )

    assert values(open_store) == [("a", 0, 0, 0.2), ("b", 9, 0, 0.2)]


def test_figures_are_those_of_the_present_rows_after_any_revisions_batches_and_restarts(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb_store, "MERGED_AFTER_CHANGES", 8)
    chance, latest, stored = random.Random(7), dict[str, Score](), 0
    for _ in range(6):
        batches = []
        for _ in range(4):
            scores = [
                make_score(
                    f"s{chance.randrange(9)}",
                    value=chance.choice([None, 0.25, 0.5, 1.0]),
                    revision=chance.randrange(4),
                    attempt=chance.randrange(2),
                    app_name=chance.choice([None, "shop"]),
                    occurred_at=NOW + timedelta(minutes=chance.randrange(3)),
                    cost={"usd": chance.randrange(4) / 4, "input_tokens": chance.randrange(9), "output_tokens": 2},
                )
                for _ in range(chance.randrange(6))
            ]
            for score in scores:
                before = latest.get(score.session_id)
                if before is None or (score.revision, score.attempt) >= (before.revision, before.attempt):
                    latest[score.session_id] = score
            batches.append(scores_batch(*scores, offset=stored))
            stored += len(scores)
        write(open_store, *batches)

        store = open_store()
        assert values_of(latest) == [
            tuple(row.values())
            for row in store.query("SELECT session_id, revision, attempt, value FROM results ORDER BY ALL")
        ]
        assert figures(store) == recomputed_figures(store)
        store.close()


def values_of(latest: dict[str, Score]) -> list[tuple[object, ...]]:
    return sorted((score.session_id, score.revision, score.attempt, score.value) for score in latest.values())


def test_a_process_that_lost_the_store_cannot_write_to_it(open_store: OpenStore) -> None:
    first = open_store("the first process")
    second = open_store("the second\x1b process")

    with pytest.raises(StoreLostError, match=r"was opened by the second\\x1b process after this process"):
        first.write(scores_batch(make_score("a")))
    second.write(scores_batch(make_score("b")))
    assert second.query("SELECT session_id FROM results") == [{"session_id": "b"}]


def test_old_rows_are_removed_and_their_figures_stay(open_store: OpenStore) -> None:
    store = open_store()
    # ClickHouse removes a month that is over.
    at = NOW - timedelta(days=50)
    old, later = (
        make_score("old", value=0.9, revision=revision, occurred_at=at, segment_opened_at=at) for revision in range(2)
    )
    store.write(scores_batch(old, later, make_score("new", segment_opened_at=NOW)))
    before = figures(store)

    assert store.remove_old({"results": NOW - timedelta(days=2)}) == {"results": 1}

    assert store.query("SELECT session_id FROM results") == [{"session_id": "new"}]
    assert store.query("SELECT session_id FROM replaced_results") == []
    assert figures(store) == before


def test_what_a_replaced_result_has_cost_stays_counted_in_whatever_order_results_come(open_store: OpenStore) -> None:
    store = open_store()
    paid = {"usd": 0.5, "input_tokens": 7, "output_tokens": 3}
    first, second, third = (make_score("a", value=revision / 4, revision=revision, cost=paid) for revision in range(3))
    store.write(scores_batch(first, second))
    store.write(scores_batch(third.model_copy(update={"cost": Cost(cached=True)}), offset=2))
    store.write(scores_batch(first, offset=3))

    (found,) = figures(store)
    assert (found["n"], found["value_sum"]) == (1, 0.5)
    assert (found["usd"], found["input_tokens"], found["output_tokens"]) == (1.5, 21, 9)


def test_a_revision_of_a_removed_result_replaces_its_figures(open_store: OpenStore) -> None:
    store = open_store()
    at = NOW - timedelta(days=50)
    old = make_score("a", value=0.2, occurred_at=at, segment_opened_at=at, cost={"usd": 0.5, "input_tokens": 7})
    store.write(scores_batch(old, make_score("other", value=0.4, occurred_at=at, segment_opened_at=at)))
    assert store.remove_old({"results": NOW - timedelta(days=2)}) == {"results": 2}
    store.write(scores_batch(make_score("a", value=0.9, revision=1, segment_opened_at=at), offset=2))

    (before, after) = figures(store)
    assert (before["n"], before["value_sum"], before["usd"]) == (1, 0.4, 0.5)
    assert (after["n"], after["value_sum"], after["passed"]) == (1, 0.9, 1)


def test_a_removed_result_is_replaced_however_often_it_was_removed(open_store: OpenStore) -> None:
    store = open_store()
    for revision in range(3):
        store.write(scores_batch(make_score("a", value=revision / 4, revision=revision), offset=revision))
        store.remove_old({"results": NOW + timedelta(days=2)})

    (found,) = figures(store)
    assert (found["n"], found["value_sum"]) == (1, 0.5)


def test_a_forged_revision_of_another_session_replaces_no_removed_result(open_store: OpenStore) -> None:
    store = open_store()
    original = make_score("a", value=0.2)
    store.write(scores_batch(original))
    store.remove_old({"results": NOW + timedelta(days=2)})
    store.write(scores_batch(original.model_copy(update={"session_id": "b", "revision": 9}), offset=1))

    assert [each["n"] for each in figures(store)] == [2]


def test_a_revision_that_is_lower_than_the_removed_one_changes_no_figure(open_store: OpenStore) -> None:
    store = open_store()
    store.write(scores_batch(make_score("a", value=0.9, revision=2)))
    store.remove_old({"results": NOW + timedelta(days=2)})
    before = figures(store)
    store.write(scores_batch(make_score("a", value=0.1, revision=1), offset=1))

    assert figures(store) == before


def rejected(revision: int, *reasons: str) -> Score:
    decision = make_score("a", "gate", 0.0, level="trace", trace_id="t", revision=revision)
    return decision.model_copy(update={"details": {"reasons": list(reasons)}})


def rejections(store: Store) -> dict[str, int]:
    found = store.query(
        "SELECT reason, sum(n) AS n FROM (SELECT * FROM rejections UNION ALL SELECT * FROM rejection_changes) AS found "
        "GROUP BY reason HAVING sum(n) <> 0"
    )
    return {row["reason"]: int(row["n"]) for row in found}


def test_a_revision_replaces_the_reasons_of_a_rejection_also_when_it_was_removed(open_store: OpenStore) -> None:
    store = open_store()
    store.write(scores_batch(rejected(0, "duplicate", "threshold"), rejected(0, "threshold")))
    assert rejections(store) == {"threshold": 1}
    store.write(scores_batch(rejected(1, "late", "threshold"), offset=2))
    assert rejections(store) == {"late": 1, "threshold": 1}
    store.remove_old({"results": NOW + timedelta(days=1)})
    store.write(scores_batch(rejected(2, "late"), offset=3))

    assert rejections(store) == {"late": 1}


def test_figures_and_what_is_left_of_removed_results_go_after_their_time(open_store: OpenStore) -> None:
    store = open_store()
    at = [NOW - timedelta(days=days) for days in (70, 40, 0)]
    scores = [make_score(f"s{n}", value=0.5, occurred_at=each, segment_opened_at=each) for n, each in enumerate(at)]
    store.write(scores_batch(*scores))
    store.remove_old({"results": NOW - timedelta(days=3)})
    for figures_before in (NOW.replace(year=1926), NOW - timedelta(days=50)):
        store.remove_old_figures(NOW - timedelta(days=3), figures_before)
    assert [each["n"] for each in figures(store)] == [1, 1]

    # Of the first result nothing is left that its revision could replace.
    revisions = [score.model_copy(update={"revision": 1, "occurred_at": NOW}) for score in scores]
    store.write(scores_batch(*revisions[:2], offset=3))
    assert [each["n"] for each in figures(store)] == [3]


def test_figures_from_before_1970_are_removed_too(open_store: OpenStore) -> None:
    store = open_store()
    store.write(scores_batch(make_score("old", occurred_at=NOW.replace(year=1925)), make_score("new")))
    store.remove_old_figures(NOW.replace(year=1926), NOW.replace(year=1926))

    assert [each["n"] for each in figures(store)] == [1]


def test_dead_letters_and_the_marks_of_their_replay_have_rows(open_store: OpenStore) -> None:
    letter = DeadLetter("late", "too late\x1b[31m", "assemble", "traceweir.traces", 2, 17, b"k", b"\xff\x00text")
    store = open_store()
    store.write(
        batch_of(
            "dead-letters",
            FakeRecord(letter.wire_value(), 4, letter.key, letter.wire_headers()),
            FakeRecord(None, 5, None, [(REPLAYED, b"0:4")]),
            FakeRecord(b"forged", 6),
        )
    )

    (found,) = store.query("SELECT * FROM dead_letters")
    assert (found["letter_id"], found["reason"], found["source_offset"]) == ("0:4", "late", 17)
    assert (found["detail"], found["record_value"]) == ("too late\\x1b[31m", "\\xff\0text")
    assert store.query("SELECT letter_id FROM replays") == [{"letter_id": "0:4"}]
    assert store.query("SELECT topic, n FROM unreadable_records") == [{"topic": "dead-letters", "n": 1}]


@pytest.mark.parametrize(
    ("topic", "record"),
    [
        ("results", FakeRecord(make_score("a").wire(), timestamp=2**62)),
        ("results", FakeRecord(b"{")),
        ("sessions", FakeRecord(b'{"session_id": "a", "segment": -1}')),
        ("sessions", FakeRecord(b"[" * 100_000)),
        ("network", FakeRecord(b"{}", key=None)),
        ("network", FakeRecord(b"\xff", key=b"t")),
        ("dead-letters", FakeRecord(b"x", headers=[("traceweir.partition", b"9" * 30)])),
        (
            "dead-letters",
            FakeRecord(b"x", headers=DeadLetter("late", "d", "assemble", "t", 10**30, 1, None, b"x").wire_headers()),
        ),
    ],
)
def test_a_forged_record_costs_itself_and_no_neighbour(topic: str, record: FakeRecord, open_store: OpenStore) -> None:
    good = {
        "results": FakeRecord(make_score("good").wire(), 1),
        "sessions": FakeRecord(orjson.dumps(session_document("good")), 1),
        "network": FakeRecord(b"{}", 1, b"good"),
        "dead-letters": FakeRecord(b"x", 1, b"k", DeadLetter("late", "", "gate", "t", 0, 1, None, b"x").wire_headers()),
    }[topic]
    store = open_store()

    store.write(batch_of(topic, record, good))

    assert store.query(f"SELECT count(*) AS n FROM {topic.replace('-', '_')}") == [{"n": 1}]
    assert store.query("SELECT n FROM unreadable_records") == [{"n": 1}]


def test_an_event_that_another_replaces_is_not_counted_and_names_no_dimension(open_store: OpenStore) -> None:
    kind = {"type": "invocation.started", "invocation_id": "i", "session_id": "a"}
    replaced = kind | {"event_id": "a-1", "app_name": "shop", "environment": "prod"}
    current = kind | {"event_id": "a-1~2", "replaces": ["a-1"], "app_name": "bank"}
    store = open_store()
    store.write(batch_of("sessions", FakeRecord(orjson.dumps(session_document("a", events=[replaced, current])))))

    found = store.query("SELECT events, app_name, environment FROM sessions")

    assert found == [{"events": 1, "app_name": "bank", "environment": None}]


def test_figures_of_huge_costs_are_added_up(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_store, "MERGED_AFTER_CHANGES", 1)
    store = open_store()
    for offset, name in enumerate("abc"):
        store.write(scores_batch(make_score(name, cost={"input_tokens": 2**63 - 1}), offset=offset))

    assert store.query("SELECT sum(input_tokens) AS n FROM rollups") == [{"n": 3.0 * 2**63}]


def test_a_tombstone_withdraws_a_trace_from_the_network(open_store: OpenStore) -> None:
    store = open_store()
    store.write(batch_of("network", FakeRecord(b'{"@id": "t"}', 0, b"t"), FakeRecord(b'{"@id": "u"}', 1, b"u")))
    store.write(batch_of("network", FakeRecord(None, 2, b"t")))

    found = store.query("SELECT trace_id, accepted, document FROM network ORDER BY trace_id")
    assert found == [
        {"trace_id": "t", "accepted": False, "document": None},
        {"trace_id": "u", "accepted": True, "document": '{"@id": "u"}'},
    ]


def test_a_topic_that_is_started_over_has_no_rows_and_offsets_and_is_stored_again(open_store: OpenStore) -> None:
    store = open_store()
    kept, withdrawn = (FakeRecord(b"{}", 7, b"kept"), FakeRecord(b"{}", 8, b"withdrawn"))
    store.write(batch_of("network", kept, withdrawn))
    store.write(scores_batch(make_score("a")))
    store.write(Batch(topic_ids={"network": "id"}, current_at={"network": NOW}))

    assert store.start_over("network", "network", NOW - timedelta(hours=1)) == 2
    assert store.query("SELECT trace_id FROM network") == []
    assert store.offsets() == {SourcePartition("results", 0): 1}
    assert store.current_at() == {"network": NOW - timedelta(hours=1)}
    store.write(batch_of("network", kept))
    store.write(Batch(current_at={"network": NOW - timedelta(minutes=30)}))

    again = open_store()
    assert again.query("SELECT trace_id, accepted FROM network") == [{"trace_id": "kept", "accepted": True}]
    assert again.offsets() == {SourcePartition("results", 0): 1, SourcePartition("network", 0): 8}
    assert again.current_at() == {"network": NOW - timedelta(minutes=30)}
    assert again.topic_ids() == {"network": "id"}
    assert again.query("SELECT session_id FROM results") == [{"session_id": "a"}]


def test_the_stored_status_is_the_reported_one_and_a_revision_with_a_threshold_is_a_verdict(
    open_store: OpenStore,
) -> None:
    scores = [
        make_score(f"{metric} {value} {threshold}", metric, value, threshold=threshold)
        for metric in ("match", "gate")
        for value in (0.2, 0.9, None)
        for threshold in (None, 0.75)
    ]
    write(open_store, scores_batch(*scores))
    store = open_store()
    stored = {row["session_id"]: row["status"] for row in store.query("SELECT session_id, status FROM results")}
    assert stored == {each.session_id: reported_status(each.metric, each.status, each.threshold) for each in scores}
    assert {"INFORMATIONAL", "PASSED", "FAILED", "NOT_EVALUATED"} == set(stored.values())
    assert figures(store) == recomputed_figures(store)

    store.write(scores_batch(make_score("match 0.9 None", "match", 0.9, revision=1), offset=len(scores)))
    assert figures(store) == recomputed_figures(store)
