"""Alerts are the same in any order of partitions and after kills at any step, and each is raised and resolved once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.alert_story import RULE, replayed, score, story
from tests.support.alerts import make_alert
from tests.support.scoring import NOW

from traceweir.schemas.alert import Alert
from traceweir.schemas.alert_rule import DEFAULT_ALERT_RULE, AlertRule
from traceweir.schemas.score import Score
from traceweir.streams.tools.alerts.alert_watch import AlertWatch
from traceweir.streams.tools.alerts.open_minutes import QUIET_S, read_kept
from traceweir.streams.tools.alerts.state_rows import FORMAT, LogPlace, StateFormatError, StateRows

PARTITIONS = 3


def partitioned(scores: Sequence[Score]) -> list[list[Score]]:
    logs: list[list[Score]] = [[] for _ in range(PARTITIONS)]
    for each in scores:
        logs[int(each.session_id[1:]) % PARTITIONS].append(each)
    return logs


class Log:
    """The topics: scores, and what was written. A cut is written whole or not at all."""

    def __init__(self, scores: Sequence[Score]) -> None:
        self.scores = partitioned(scores)
        self.rows: dict[bytes, bytes] = {}
        self.alerts: list[Alert] = []

    def write(self, rows: Sequence[tuple[bytes, bytes | None]], alerts: Sequence[Alert]) -> None:
        for key, row in rows:
            if row is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = row
        self.alerts += alerts


class Run(NamedTuple):
    """One process until its end."""

    reads: int
    """Batches that it reads; then it is killed."""
    written: bool
    """Whether its last cut was written before it was killed."""
    seed: int
    """Determines the order of partitions and the sizes of batches."""


def loaded(log: Log) -> tuple[AlertWatch, dict[int, int]]:
    watch = AlertWatch()
    place = watch.load(log.rows)
    if RULE.id not in watch.rules:
        watch.put_rule(RULE.id, RULE)
    return watch, {partition: place.results.get(partition, 0) for partition in range(PARTITIONS)}


def run(log: Log, process: Run) -> None:
    random = Random(process.seed)
    watch, at = loaded(log)
    for read in range(process.reads):
        behind = {each for each in at if at[each] < len(log.scores[each])}
        ahead = watch.too_far_ahead(behind)
        partition = random.choice(sorted(behind - ahead) or [0])
        for each in log.scores[partition][at[partition] : at[partition] + random.randint(1, 80)]:
            watch.add(partition, at[partition], each)
            at[partition] += 1
        watch.tick(0.0, {each for each in at if at[each] < len(log.scores[each])})
        if random.random() < 0.3 and not watch.reads_again(at):
            cut = watch.cut(LogPlace(dict(at)))
            if read + 1 < process.reads or process.written:
                log.write(cut.rows, cut.alerts)
            else:
                return


def finish(log: Log) -> AlertWatch:
    run(log, Run(10**4, True, 1))
    watch, at = loaded(log)
    for partition, scores in enumerate(log.scores):
        for offset, each in enumerate(scores[at[partition] :], at[partition]):
            watch.add(partition, offset, each)
    watch.tick(0.0, ())
    watch.tick(QUIET_S, ())
    cut = watch.cut(LogPlace({each: len(scores) for each, scores in enumerate(log.scores)}))
    log.write(cut.rows, cut.alerts)
    return watch


STORY = story()


EXPECTED: dict[str, Alert] = {}


@pytest.mark.slow
@given(
    st.lists(st.builds(Run, st.integers(1, 60), st.booleans(), st.integers(0, 10**6)), max_size=6),
)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_kills_at_any_step_leave_the_alerts_of_a_replay_each_raised_and_resolved_once(runs: list[Run]) -> None:
    if not EXPECTED:
        EXPECTED.update(replayed(STORY))
    log = Log(STORY)
    for process in runs:
        run(log, process)
    finish(log)
    assert EXPECTED
    assert {each.alert_id: each for each in log.alerts} == EXPECTED
    said = Counter((each.alert_id, each.state) for each in log.alerts)
    assert set(said.values()) == {1}
    assert {state for _, state in said} == {"raised", "resolved"}


def watched(rule: AlertRule | None = RULE) -> AlertWatch:
    watch = AlertWatch()
    if rule is not None:
        watch.put_rule(rule.id, rule)
    return watch


def reloaded(watch: AlertWatch, rows: Mapping[bytes, bytes] | None = None) -> AlertWatch:
    log = Log([])
    log.rows = dict(rows or {})
    cut = watch.cut(LogPlace())
    log.write(cut.rows, cut.alerts)
    found = AlertWatch()
    found.load(log.rows)
    return found


def raised() -> AlertWatch:
    """A watch of the story up to the time at which an alert is raised."""
    watch = watched()
    for each in STORY:
        watch.add(0, 0, each)
        watch.tick(0.0, {0})
        if watch.raised:
            break
    return watch


def test_a_score_whose_minute_is_over_counts_in_the_oldest_that_is_not_and_is_counted() -> None:
    watch = watched()
    watch.add(0, 0, score(1, 0, True))
    watch.add(0, 0, score(2, 10, True))
    watch.tick(0.0, {0})
    watch.add(0, 0, score(3, 0, True))
    assert watch.counts["late"] == 1
    watch.tick(0.0, ())
    watch.tick(QUIET_S, ())
    assert sum(each.sessions_a_day for each in watch.reports()["r"]) == 3


def test_a_partition_holds_a_minute_open_until_it_is_read_to_its_end_and_idle() -> None:
    watch = watched()
    watch.add(1, 0, score(0, 0, True))
    watch.add(0, 0, score(1, 0, True))
    watch.add(0, 0, score(2, 10, True))
    for now_s, behind in ((0.0, {0, 1}), (QUIET_S - 1, {0}), (QUIET_S, {0, 1})):
        watch.tick(now_s, behind)
        assert watch.reports()["r"] == []
    watch.tick(QUIET_S, {0})
    assert len(watch.reports()["r"]) == 1


def test_a_partition_of_which_nothing_was_read_yet_holds_all_minutes_open() -> None:
    watch = watched()
    watch.add(0, 0, score(1, 0, True))
    watch.add(0, 0, score(2, 10, True))
    watch.tick(0.0, {0, 1})
    assert watch.reports()["r"] == []
    watch.tick(0.0, {0})
    assert len(watch.reports()["r"]) == 1


def test_a_restart_does_not_take_a_busy_partition_for_an_idle_one() -> None:
    watch = watched()
    for offset, minute in enumerate((0, 10)):
        watch.add(1, offset, score(10 + offset, minute, True))
        watch.add(0, offset, score(20 + offset, minute, True))
    watch.tick(0.0, {0, 1})
    again = reloaded(watch)
    again.add(0, 1, score(21, 10, True))
    again.add(0, 2, score(22, 20, True))
    again.tick(1_000.0, {0})
    assert again.reports() == watch.reports()
    again.tick(1_000.0 + QUIET_S, {0})
    assert again.reports() != watch.reports()


def sessions_of(watch: AlertWatch) -> float:
    """Ends all minutes; returns how many sessions have counted in the only stream, which has less than a day."""
    watch.tick(0.0, ())
    watch.tick(QUIET_S, ())
    (report,) = watch.reports()["r"]
    return report.sessions_a_day


def restarted(log: Log, watch: AlertWatch, read: int) -> tuple[AlertWatch, int]:
    """Returns a watch that goes on from the state of another one, and from which offset it reads partition 0."""
    cut = watch.cut(LogPlace({0: read}))
    log.write(cut.rows, cut.alerts)
    again = AlertWatch()
    return again, again.load(log.rows).results[0]


def test_a_restart_reads_open_minutes_again_and_counts_each_score_once() -> None:
    scores = [score(number, minute, True) for number, minute in enumerate((0, 9, 0, 10, 1))]
    watch = watched()
    for offset, each in enumerate(scores):
        watch.add(0, offset, each)
        if offset < 3:
            watch.tick(0.0, {0})
    assert watch.counts["late"] == 2
    again, begin = restarted(Log([]), watch, len(scores))
    assert begin == 1
    for offset, each in enumerate(scores[begin:], begin):
        again.add(0, offset, each)
    assert sessions_of(again) == len(scores)
    assert again.counts["late"] == 0


def test_offsets_of_another_topic_are_no_reason_to_leave_scores_out() -> None:
    watch = watched()
    for offset, minute in enumerate((0, 10)):
        watch.add(0, offset, score(offset, minute, True))
    watch.tick(0.0, {0})
    again, _ = restarted(Log([]), watch, 2)
    again.forget_offsets(0)
    again.add(0, 0, score(5, 0, True))
    assert sessions_of(again) == 2


def test_a_score_far_ahead_is_kept_in_a_row_so_that_a_restart_does_not_read_from_there() -> None:
    watch = watched()
    log = Log([])
    minutes = [100_000, 0, 10, 100_000, 20]
    for offset, minute in enumerate(minutes):
        watch.add(0, offset, score(offset, minute, True))
        watch.add(1, offset, score(10 + offset, min(minute, 20), True))
        watch.tick(0.0, {0, 1})
    first, begin = restarted(log, watch, len(minutes))
    assert begin == 4
    for offset, minute in enumerate(minutes[begin:], begin):
        first.add(0, offset, score(offset, minute, True))
    second, begin = restarted(log, first, len(minutes))
    assert begin == 4
    for offset, minute in enumerate(minutes[begin:], begin):
        second.add(0, offset, score(offset, minute, True))
    second.tick(0.0, ())
    second.tick(QUIET_S, ())
    # Those of partition 1 whose minutes were over are in the state, and the others are not read here.
    assert second.reports()["r"][0].sessions_a_day * 100_000 / 1_440 == pytest.approx(len(minutes) + 2)


def test_the_last_minutes_are_over_after_a_time_without_scores() -> None:
    watch = watched()
    watch.add(0, 0, score(1, 0, True))
    watch.tick(100.0, ())
    watch.tick(100.0 + QUIET_S - 1, ())
    assert watch.reports()["r"] == []
    watch.tick(100.0 + QUIET_S, ())
    assert len(watch.reports()["r"]) == 1


def test_without_a_pushed_rule_the_default_rule_is_watched_and_a_pushed_one_takes_its_place() -> None:
    watch = watched(None)
    assert list(watch.rules) == [DEFAULT_ALERT_RULE.id]
    watch.put_rule("r", RULE)
    assert list(reloaded(watch).rules) == ["r"]
    watch.put_rule("r", None)
    assert list(watch.rules) == [DEFAULT_ALERT_RULE.id]


@pytest.mark.slow
def test_a_rule_that_changes_resolves_its_alerts_and_learns_anew() -> None:
    watch = raised()
    (alert,) = watch.raised
    watch.cut(LogPlace())
    watch.put_rule("r", RULE)
    assert watch.raised == [alert]
    watch.put_rule("r", RULE.model_copy(update={"tolerated_change": 0.1}))
    cut = watch.cut(LogPlace())
    assert [(each.alert_id, each.resolution) for each in cut.alerts] == [(alert.alert_id, "rule_ended")]
    assert {row for key, row in cut.rows if key.startswith(b"stream/")} == {None}
    assert watch.reports()["r"] == []


@pytest.mark.parametrize("successor", [None, RULE.model_copy(update={"by": ()})], ids=["withdrawn", "changed"])
def test_scores_that_were_written_for_a_rule_do_not_count_for_another(successor: AlertRule | None) -> None:
    """They are in rows of minutes that are not over, and come back after a restart."""
    watch = watched()
    watch.add(0, 0, score(1, 0, passed=True, app_name="shop"))
    rows = {key: row for key, row in watch.cut(LogPlace()).rows if row is not None}
    watch.put_rule(RULE.id, successor)
    again = reloaded(watch, rows)
    again.tick(0.0, ())
    again.tick(2 * QUIET_S, ())
    assert [each for reports in again.reports().values() for each in reports] == []


@pytest.mark.parametrize("key", [b"open/0", b"stream/r/1"])
def test_a_state_that_cannot_be_read_names_the_way_out(key: bytes) -> None:
    watch = watched()
    rows = {name: row for name, row in watch.cut(LogPlace()).rows if row is not None}
    with pytest.raises(StateFormatError, match="delete the topic alerts-state"):
        AlertWatch().load(rows | {key: b"?"})


@pytest.mark.slow
def test_an_accepted_level_is_learnt_and_its_stream_keeps_its_number() -> None:
    watch = raised()
    (alert,) = watch.raised
    kept = {key: row for key, row in watch.cut(LogPlace()).rows if row is not None}
    assert watch.accept("another") is False
    assert watch.accept(alert.alert_id) is True
    assert watch.accept(alert.alert_id) is False
    cut = watch.cut(LogPlace())
    assert [(each.alert_id, each.resolution) for each in cut.alerts] == [(alert.alert_id, "accepted")]
    (key,) = [key for key, _ in cut.rows if key.startswith(b"stream/")]
    assert key in kept
    states = {each.stream.slice: each.state for each in watch.reports()["r"]}
    assert states == {(("app_name", "shop"),): "learning", (("app_name", "bank"),): "watched"}


def test_streams_beyond_the_bound_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traceweir.streams.tools.alerts.watched_rule.MOST_STREAMS", 1)
    watch = watched()
    for number in range(3):
        watch.add(0, 0, score(number, number, True, app_name=f"app-{number}"))
    watch.tick(0.0, ())
    watch.tick(QUIET_S, ())
    assert (len(watch.reports()["r"]), watch.counts["unwatched"]) == (1, 2)


def test_a_minute_of_many_streams_is_closed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """So heartbeats are sent between them."""
    monkeypatch.setattr("traceweir.streams.tools.alerts.alert_watch.STREAMS_A_PART", 2)
    watch = watched()
    for number in range(6):
        watch.add(0, 0, score(number, 0, True, app_name=f"app-{number}"))
    list(watch.ticking(0.0, ()))
    stepped = [watch.changed_streams for _ in watch.ticking(QUIET_S, ())]
    assert stepped[-3:] == [0, 2, 4]
    assert watch.changed_streams == 6


def test_streams_that_are_not_watched_are_passed_in_parts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traceweir.streams.tools.alerts.alert_watch.STREAMS_A_PART", 2)
    monkeypatch.setattr("traceweir.streams.tools.alerts.watched_rule.MOST_STREAMS", 2)
    watch = watched()
    for number in range(6):
        watch.add(0, 0, score(number, 0, True, app_name=f"app-{number}"))
    list(watch.ticking(0.0, ()))
    # Three parts of the six streams, and one of the two that are watched.
    assert len(list(watch.ticking(QUIET_S, ()))) == 4
    assert watch.counts["unwatched"] == 4


def test_a_partition_far_ahead_of_others_waits() -> None:
    watch = watched()
    watch.add(0, 0, score(1, 0, True))
    watch.add(1, 0, score(2, 1_000, True))
    assert watch.too_far_ahead({0, 1}) == {1}
    assert watch.too_far_ahead({1}) == set()


def test_a_state_of_another_form_is_refused_with_the_way_out() -> None:
    rows = {key: row for key, row in watched().cut(LogPlace()).rows if row is not None}
    head = rows[b"head"].replace(b"\xa6format" + bytes([FORMAT]), b"\xa6format" + bytes([FORMAT + 1]))
    assert head != rows[b"head"]
    with pytest.raises(
        StateFormatError, match=f"has the format {FORMAT + 1}, and this version of Traceweir reads {FORMAT}"
    ):
        AlertWatch().load({b"head": head})


def test_time_goes_on_after_a_restart_by_scores_that_no_rule_uses() -> None:
    informational = {"metric": "latency", "threshold": None}
    watch = AlertWatch()
    watch.add(0, 0, score(0, 10, True, **informational))
    head = StateRows.of({key: row for key, row in watch.cut(LogPlace({0: 1})).rows if row is not None}).head
    assert head is not None
    assert len(head.unused) == 1

    again = AlertWatch()
    again.load({b"head": head.row()[1]})
    again.add(0, 1, score(1, 20, True, **informational))
    again.tick(0.0, {0})
    found = StateRows.of({key: row for key, row in again.cut(LogPlace({0: 2})).rows if row is not None}).head
    assert found is not None
    assert found.closed == head.unused[0]


def test_what_is_read_again_is_no_state_until_all_of_it_is_read() -> None:
    watch = watched()
    for offset in range(10):
        watch.add(0, offset, score(offset, offset, True))
    again, begin = restarted(Log([]), watch, 10)
    assert begin < 9
    for offset in range(begin, 10):
        assert again.reads_again({0: offset})
        again.add(0, offset, score(offset, offset, True))
    assert not again.reads_again({0: 10})
    again.forget_offsets(0)
    assert not again.reads_again({0: 0})


def test_a_score_far_ahead_is_in_one_row_however_often_it_is_read_again() -> None:
    scores = [score(0, 0, True), score(1, 200, True), score(2, 0, True), score(3, 1, True)]
    log = Log([])
    watch = watched()
    for offset, each in enumerate(scores):
        watch.add(0, offset, each)
    for _ in range(3):
        watch, begin = restarted(log, watch, len(scores))
        assert begin == 0
        for offset, each in enumerate(scores):
            watch.add(0, offset, each)
        # Partition 1 has unread records, so no minute is over.
        watch.tick(0.0, {0, 1})
    watch.add(0, 4, score(4, 200, True))
    watch, begin = restarted(log, watch, 5)
    for offset in range(begin, 4):
        watch.add(0, offset, scores[offset])
    watch.tick(0.0, ())
    watch.tick(QUIET_S, ())
    assert sessions_of(watch) == 5
    kept = [each for key, row in log.rows.items() if key.startswith(b"open/") for each in read_kept(row)]
    assert sorted(each.score.session for each in kept) == ["s1", "s4"]


def test_an_alert_without_a_state_is_resolved_and_not_before_it_was_raised() -> None:
    watch = watched()
    early = make_alert("early")
    late = make_alert("late", hours=-5)
    watch.resolve_lost([early, late], NOW)
    assert watch.raised == []
    cut = watch.cut(LogPlace())
    assert [(each.stream.metric, each.state, each.resolution, each.occurred_at) for each in cut.alerts] == [
        ("early", "resolved", "state_lost", NOW),
        ("late", "resolved", "state_lost", late.since),
    ]
    assert watch.cut(LogPlace()).alerts == []
