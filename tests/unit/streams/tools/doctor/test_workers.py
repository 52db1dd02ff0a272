"""The groups of workers say which stages are worked on, how far each worker is, and what was removed unread."""

from __future__ import annotations

from collections.abc import Mapping

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.inputs import Place
from traceweir.streams.base.topics import STAGES
from traceweir.streams.pipeline.topology import topics_of
from traceweir.streams.tools.doctor.finding import Finding
from traceweir.streams.tools.doctor.workers import STILL_AFTER_S, check_workers, groups_of
from traceweir.streams.worker.kafka.consumer_group import GroupMember
from traceweir.streams.worker.kafka.group_states import GroupState, GroupStates

SETTINGS = Settings(partitions=2)
GROUP = "traceweir.assemble-score-gate"
TRACES, SESSIONS = "traceweir.traces", "traceweir.sessions"
NOBODY = GroupState({}, ())


def worker(name: str, *numbers: int) -> GroupMember:
    return GroupMember(f"faust-{name}", name, "/10.0.0.1", frozenset(Place(TRACES, number) for number in numbers))


def looked(
    ends: Mapping[Place, int], begins: Mapping[Place, int] | None = None, **changes: GroupState
) -> list[Finding]:
    """Checks the groups, of which no other one exists; names of groups are given without the prefix."""
    states = dict.fromkeys(groups_of("traceweir."), NOBODY)
    states |= {f"traceweir.{name.replace('_', '-')}": state for name, state in changes.items()}
    topics = {topic for stage in STAGES for topic in topics_of(stage, SETTINGS.topics).inputs}
    last = {Place(topic, 0): 0 for topic in topics} | dict(ends)
    first = dict.fromkeys(last, 0) | dict(begins or {})
    return list(check_workers(GroupStates(False, first, last, states), SETTINGS))


def texts(findings: list[Finding], state: str) -> list[str]:
    return [each.text for each in findings if each.state == state]


def test_each_worker_is_named_with_its_lag() -> None:
    ends = {Place(TRACES, 0): 10, Place(TRACES, 1): 20}
    both = GroupState({Place(TRACES, 0): 4}, (worker("b", 1), worker("a", 0)))
    found = looked(ends, assemble_score_gate=both)

    assert found[0] == Finding("workers", "ok", f"{GROUP}: 2 workers, 26 records behind (a 6, b 20)")
    assert [each.state for each in found] == ["ok", "ok"]


def test_an_added_partition_belongs_to_the_worker_of_its_number() -> None:
    ends = {Place(TRACES, 3): 5, Place(TRACES, 0): 0, Place(TRACES, 1): 0}
    both = GroupState({}, (worker("a", 0), worker("b", 1)))
    (text,) = texts(looked(ends, assemble_score_gate=both), "ok")[:1]
    assert text.endswith("(a 0, b 5)")


def test_without_a_worker_the_stages_and_what_waits_are_named() -> None:
    found = looked({Place(TRACES, 0): 10})
    assert texts(found, "failure") == [
        "no worker runs the stages assemble, score, gate: start `traceweir worker`; 10 records behind"
    ]


def test_a_group_that_has_lost_its_workers_says_what_waits_behind_its_offsets() -> None:
    left = GroupState({Place(TRACES, 0): 7}, ())
    (text,) = texts(looked({Place(TRACES, 0): 10}, assemble_score_gate=left), "failure")
    assert text.endswith("3 records behind")


def test_a_stage_of_which_no_worker_runs_is_named_although_others_run() -> None:
    found = looked({}, assemble=GroupState({}, (worker("a", 0),)), score=GroupState({}, (worker("b", 0),)))
    assert texts(found, "failure") == ["no worker runs the stage gate: start `traceweir worker`; 0 records behind"]


def test_a_former_group_whose_stages_other_workers_have_taken_over_does_not_matter() -> None:
    former = GroupState({Place(TRACES, 0): 2}, ())
    begins, ends = {Place(TRACES, 0): 8}, {Place(TRACES, 0): 10}
    now = {name: GroupState({Place(TRACES, 0): 10}, (worker(name, 0),)) for name in ("assemble", "score", "gate")}
    found = looked(ends, begins, assemble_score_gate=former, **now)
    assert {each.state for each in found} == {"ok"}


def test_a_stage_that_can_be_left_out_is_missing_only_if_something_waits_for_it() -> None:
    place = Place("otlp_spans", 0)
    inputs = {Place(topic, 0): 0 for topic in topics_of("collect", SETTINGS.topics).inputs}
    three, four = GroupState({}, (worker("a", 0, 1),)), GroupState({place: 10}, ())

    def failures(end: int) -> list[str]:
        found = looked(inputs | {place: end}, assemble_score_gate=three, collect_assemble_score_gate=four)
        return texts(found, "failure")

    assert failures(10) == []
    (text,) = failures(12)
    assert text.startswith("no worker runs the stage collect: start `traceweir worker`")
    assert text.endswith("; 2 records behind")


def test_without_transactions_the_last_entry_is_a_record() -> None:
    ends = {Place(SESSIONS, 0): 1}
    states = dict.fromkeys(groups_of("traceweir."), NOBODY) | {GROUP: GroupState({}, (worker("a", 0),))}
    topics = {topic for stage in STAGES for topic in topics_of(stage, SETTINGS.topics).inputs}
    first = {Place(topic, 0): 0 for topic in topics}
    looked_at = GroupStates(False, first, first | ends, states)
    behind = {
        delivery: next(iter(check_workers(looked_at, SETTINGS.model_copy(update={"delivery": delivery})))).text
        for delivery in ("auto", "at_least_once")
    }
    assert [" 0 records behind" in behind["auto"], " 1 record behind" in behind["at_least_once"]] == [True, True]


def test_records_that_were_removed_unread_are_a_failure_until_they_are_passed() -> None:
    begins, ends = {Place(TRACES, 0): 8}, {Place(TRACES, 0): 10}
    behind = looked(ends, begins, assemble_score_gate=GroupState({Place(TRACES, 0): 5}, (worker("a", 0),)))
    passed = looked(ends, begins, assemble_score_gate=GroupState({Place(TRACES, 0): 8}, (worker("a", 0),)))

    (text,) = texts(behind, "failure")
    assert text.startswith(f"3 offsets of {TRACES} were removed before a worker read them")
    assert texts(passed, "failure") == []


def test_the_entry_that_ends_a_transaction_of_a_worker_is_no_record() -> None:
    # An agent writes without transactions, so that the last entry of `traces` is a record.
    committed = {Place(SESSIONS, 0): 9, Place(TRACES, 0): 9}
    found = looked(
        {Place(SESSIONS, 0): 10, Place(TRACES, 0): 10}, assemble_score_gate=GroupState(committed, (worker("a", 0),))
    )
    assert found[0].text == f"{GROUP}: 1 worker, 1 record behind (a 1)"


def test_what_this_user_may_not_ask_for_is_unknown() -> None:
    (found,) = check_workers(GroupStates(False, {}, {}, {}), SETTINGS)
    assert found.state == "failure"
    assert "no consumer group of a worker is seen" in found.text


def test_a_broker_that_does_not_say_who_runs_is_not_taken_for_one_without_workers() -> None:
    states = dict.fromkeys(groups_of("traceweir."), GroupState({}, None))
    found = list(check_workers(GroupStates(True, {Place(TRACES, 0): 0}, {Place(TRACES, 0): 3}, states), SETTINGS))
    assert found == [
        Finding("workers", "not checked", "the embedded broker does not say which workers run; 3 records behind")
    ]


def test_names_of_members_are_inert() -> None:
    hostile = GroupMember("id", "a\x1b[31m<b>", "/10.0.0.1")
    (text,) = texts(looked({}, assemble_score_gate=GroupState({}, (hostile,))), "ok")[:1]
    assert text.isprintable()


def test_the_lag_on_a_topic_that_cannot_be_seen_is_unknown() -> None:
    states = dict.fromkeys(groups_of("traceweir."), NOBODY) | {"traceweir.gate": GroupState({}, (worker("a", 0),))}
    found = check_workers(GroupStates(False, {}, {}, states), SETTINGS)
    (text,) = [each.text for each in found if "unknown" in each.text]
    assert text.startswith("unknown: how far workers are behind on traceweir.candidates: the topic does not exist, or")


def test_where_no_broker_says_who_runs_records_that_wait_without_a_commit_show_it() -> None:
    states = dict.fromkeys(groups_of("traceweir."), GroupState({}, None))

    def after(still_s: float, end: int) -> list[str]:
        looked = GroupStates(True, {Place(TRACES, 0): 0}, {Place(TRACES, 0): end}, states)
        return [each.state for each in check_workers(looked, SETTINGS, still_s=still_s)]

    assert after(STILL_AFTER_S, 3) == ["failure"]
    assert after(STILL_AFTER_S - 1, 3) == after(STILL_AFTER_S, 0) == ["not checked"]


def test_a_group_that_this_user_may_not_ask_for_can_be_the_one_that_runs() -> None:
    states = {name: NOBODY for name in groups_of("traceweir.") if name != GROUP}
    (text,) = [each.text for each in check_workers(GroupStates(False, {}, {}, states), SETTINGS)]
    assert "or grant Describe on the groups that this user may not see" in text
