"""Says which workers run, how far they are behind, and what Kafka has removed before they read it.

A worker with another choice of stages is another consumer group. A stage is worked on if a group that has it has members;
a group without members is of interest only if no other group has its stages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations

from traceweir.schemas.figures import counted
from traceweir.schemas.text import printable
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.inputs import Place
from traceweir.streams.base.topics import ALL_STAGES, STAGES, StageName, application_id
from traceweir.streams.pipeline.topology import topics_of
from traceweir.streams.tools.doctor.finding import Finding, State
from traceweir.streams.worker.kafka.consumer_group import GroupMember
from traceweir.streams.worker.kafka.group_states import GroupReader, GroupState, GroupStates, furthest

WORKERS = "workers"
REMOVED = "removed records"
STILL_AFTER_S = 120.0
"""Seconds without a new committed offset after which records that wait show that no worker runs, where no broker says it."""
MAX_NAMED = 5
"""Workers of a group that are named; the others are counted."""

Groups = Mapping[str, tuple[StageName, ...]]
"""The stages of each consumer group that workers can have, by its name."""


def groups_of(prefix: str) -> Groups:
    """Returns every consumer group that workers can have under a prefix of topics.

    >>> groups_of("acme.")["acme.assemble-score-gate"]
    ('assemble', 'score', 'gate')
    """
    chosen = [each for size in range(1, len(ALL_STAGES) + 1) for each in combinations(ALL_STAGES, size)]
    return {application_id(prefix, stages): stages for stages in chosen}


def look_at_workers(reader: GroupReader, settings: Settings) -> GroupStates:
    """Asks for the groups of workers. This blocks, and writes nothing.

    Raises:
        KafkaUnreachableError: no broker answers.
    """
    return reader.look({group: _inputs(stages, settings) for group, stages in groups_of(settings.topic_prefix).items()})


def check_workers(
    found: GroupStates, settings: Settings, *, absent: State = "failure", still_s: float = 0.0
) -> Iterator[Finding]:
    """Yields what is found about workers: which of them run, and their lag; and which records were removed unread.

    The lag of a topic that workers write in transactions does not have the entry that ends the last one.

    Args:
        found: The states of the groups.
        settings: The settings of the workers.
        absent: State of the finding if no worker runs, or if that is unknown.
        still_s: Seconds for which no committed offset has changed, as far as the caller has looked.
    """
    groups = groups_of(settings.topic_prefix)
    if not found.groups:
        name = application_id(settings.topic_prefix, STAGES)
        yield Finding(
            WORKERS, absent,
            "no consumer group of a worker is seen: start `traceweir worker`; if one runs, grant this user Describe on the "
            f"groups, for example on {name!r}, or on all with their prefix (docs/access-control.md)",
        )  # fmt: skip
        return
    known = {group: each for group, each in found.groups.items() if each.members or each.committed}
    running = {group: each for group, each in known.items() if each.members}
    lag = _Lag(found, settings, {*STAGES, *(stage for group in known for stage in groups[group])})
    # A stage that can be left out on purpose is missing only if something waits for it: its group is known for a week.
    missing = [
        stage
        for stage in _missing_stages(known, running, groups)
        if stage in STAGES or lag.can_wait([each for group, each in known.items() if stage in groups[group]], stage)
    ]
    # Groups without members count only where nothing else reads their inputs.
    resting = {group: each for group, each in known.items() if not each.members and {*groups[group]} & {*missing}}
    for group, each in running.items():
        yield Finding(WORKERS, "ok", _in_words(group, each, groups[group], lag))
    if missing:
        yield _without_workers(found, resting, missing, lag, absent, still_s)
    if unknown := sorted(_inputs([stage for group in running for stage in groups[group]], settings) - lag.topics):
        yield Finding(
            WORKERS, absent,
            f"unknown: how far workers are behind on {', '.join(unknown)}: the topic does not exist, or this user may not "
            "describe it (docs/access-control.md)",
        )  # fmt: skip
    yield from _removed({**running, **resting}, groups, lag)


def _missing_stages(known: Collection[str], running: Collection[str], groups: Groups) -> list[StageName]:
    wanted = {*STAGES, *(stage for group in known for stage in groups[group])}
    return [stage for stage in ALL_STAGES if stage in wanted and all(stage not in groups[group] for group in running)]


def _without_workers(
    found: GroupStates,
    resting: Mapping[str, GroupState],
    missing: Collection[StageName],
    lag: _Lag,
    absent: State,
    still_s: float,
) -> Finding:
    waiting = lag.waiting(resting.values(), _inputs(missing, lag.settings))
    if any(each.members is None for each in found.groups.values()):
        if waiting and still_s >= STILL_AFTER_S:
            return Finding(
                WORKERS, absent,
                f"{counted(waiting, 'record')} behind, and no worker has committed an offset for {still_s:.0f} s: check that "
                "`traceweir worker` runs",
            )  # fmt: skip
        broker = "the embedded broker does" if found.is_embedded else "these brokers do"
        return Finding(
            WORKERS, "not checked", f"{broker} not say which workers run; {counted(waiting, 'record')} behind"
        )
    stages = f"stage{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
    hidden = groups_of(lag.settings.topic_prefix).keys() - found.groups.keys()
    other = "; or grant Describe on the groups that this user may not see (docs/access-control.md)" if hidden else ""
    return Finding(
        WORKERS, absent,
        f"no worker runs the {stages}: start `traceweir worker`{other}; {counted(waiting, 'record')} behind",
    )  # fmt: skip


def _in_words(group: str, state: GroupState, stages: Collection[StageName], lag: _Lag) -> str:
    members = state.members or ()
    by_place = lag.of(state.committed, _inputs(stages, lag.settings))
    named = [
        f"{printable(_name(each), 100)} {sum(count for place, count in by_place.items() if lag.is_read_by(place, each))}"
        for each in sorted(members, key=_name)
    ]
    more = f" and {len(named) - MAX_NAMED} more" if len(named) > MAX_NAMED else ""
    return (
        f"{group}: {counted(len(members), 'worker')}, {counted(sum(by_place.values()), 'record')} behind "
        f"({', '.join(named[:MAX_NAMED])}{more})"
    )


def _removed(states: Mapping[str, GroupState], groups: Groups, lag: _Lag) -> Iterator[Finding]:
    removed: dict[str, int] = {}
    for group, state in states.items():
        for topic in _inputs(groups[group], lag.settings):
            count = lag.removed(state.committed, topic)
            removed[topic] = max(removed.get(topic, 0), count)
    gone = {topic: count for topic, count in removed.items() if count}
    for topic, count in gone.items():
        yield Finding(
            REMOVED, "failure",
            f"{count} offsets of {topic} were removed before a worker read them: workers are down, or behind, for longer than "
            "the topic's retention.ms or retention.bytes allow",
        )  # fmt: skip
    if states and not gone:
        yield Finding(REMOVED, "ok", "no unread record was removed from an input")


class _Lag:
    """Compares offsets with the logs of the topics."""

    def __init__(self, found: GroupStates, settings: Settings, stages: Collection[StageName]) -> None:
        self.settings = settings
        self._found = found
        written = frozenset(settings.topics.cleanup_policies(stages)) - settings.topics.of_others(stages)
        has_ends = not found.is_embedded and settings.delivery != "at_least_once"
        self._marked = written if has_ends else frozenset()
        """Topics whose last entry is the end of a transaction, which is no record."""

    @property
    def topics(self) -> set[str]:
        """The topics whose logs are known."""
        return {place.topic for place in self._found.ends}

    def of(self, committed: Mapping[Place, int], topics: Collection[str]) -> dict[Place, int]:
        """Returns the number of entries, at most, that were not read, by partition."""
        return {
            place: max(0, end - max(committed.get(place, 0), self._found.begins[place]) - (place.topic in self._marked))
            for place, end in self._found.ends.items()
            if place.topic in topics
        }

    def waiting(self, states: Iterable[GroupState], topics: Collection[str]) -> int:
        """Returns the number of entries, at most, that none of these groups has read."""
        return sum(self.of(furthest(states), topics).values())

    def can_wait(self, states: Iterable[GroupState], stage: StageName) -> bool:
        """Returns whether records wait for a stage, which is the case, too, where an input of it cannot be seen."""
        topics = _inputs([stage], self.settings)
        return not topics <= self.topics or self.waiting(states, topics) > 0

    def removed(self, committed: Mapping[Place, int], topic: str) -> int:
        """Returns the number of offsets that are not there any more and were not read."""
        gaps = (self._found.begins[place] - offset for place, offset in committed.items() if place.topic == topic)
        # One offset is the end of a transaction, as a takeover counts.
        return sum(gap for gap in gaps if gap > 1)

    def is_read_by(self, place: Place, member: GroupMember) -> bool:
        """Returns whether a member reads a partition: an added one belongs to whoever has its number."""
        return Place(place.topic, place.partition % self.settings.partitions) in member.places


def _inputs(stages: Collection[StageName], settings: Settings) -> set[str]:
    return {topic for stage in stages for topic in topics_of(stage, settings.topics).inputs}


def _name(member: GroupMember) -> str:
    return member.instance_id or member.host.removeprefix("/")
