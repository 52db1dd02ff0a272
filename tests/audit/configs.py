"""Claims about configs of the topic `configs`: a session has one of them, and the order of the log is their order.

They hold on Apache Kafka, where the row that says which config counts is committed with the first score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from tests.audit import claims
from tests.audit.evidence import Claim, Evidence


def each_revision_has_one_config(e: Evidence) -> Iterator[str]:
    """All scores and decisions of a revision, also those of its retries, are by one config."""
    for version, found in e.digests.items():
        if len(found) > 1:
            yield f"{version} is scored by the configs {sorted(found)}"


def each_config_was_in_effect(e: Evidence) -> Iterator[str]:
    """No score is by a config that was never in effect, such as an invalid or an uncommitted one."""
    if e.configs.files is None:
        return  # nothing was pushed, so that all digests are those of config files
    known = {*e.configs.documents, *e.configs.files}
    for digest, count in Counter(found["config_digest"] for found in e.results).items():
        if digest not in known:
            yield f"{count} scores are by the config {digest}, which was never in effect"


def configs_follow_the_log(e: Evidence) -> Iterator[str]:
    """In each partition, a later session never has an earlier state of the topic than a session before it."""
    states, reached = e.configs.states, dict[int, int]()
    for each in e.sessions:  # in the order of the partitions
        digests = e.digests.get(each.version, set())
        if len(digests) != 1:
            continue  # it has no scores, or another claim does not hold
        (digest,) = digests
        place = reached.get(each.row.partition, 0)
        later = (
            number for number in range(place, len(states)) if e.configs.chosen(states[number], each.document) == digest
        )
        if (found := next(later, None)) is None:
            yield (
                f"{each.version} at {each.row.partition}/{each.row.offset} is scored by {digest}, which was not in effect "
                f"any more: the sessions before it have the state {place} of {len(states)} or a later one"
            )
        else:
            reached[each.row.partition] = found


def the_last_config_counts_in_the_end(e: Evidence) -> Iterator[str]:
    """Sessions that were closed after the last push, when nothing was disturbed any more, have its config."""
    for each in e.sessions:
        settled = e.settled.get(each.row.partition)
        if settled is not None and each.row.offset >= settled and (digests := e.digests.get(each.version)):
            last = e.configs.chosen(e.configs.states[-1], each.document)
            if digests != {last}:
                yield f"{each.version} is scored by {sorted(digests)}, not by the last config {last}"


def require_sessions_after_the_last_push(e: Evidence) -> None:
    """Checks that `the_last_config_counts_in_the_end` says something.

    Raises:
        RuntimeError: no session was closed and scored after the last push.
    """
    after = (each for each in e.sessions if each.row.offset >= e.settled.get(each.row.partition, each.row.offset + 1))
    if not any(e.digests.get(each.version) for each in after):
        raise RuntimeError("no session was scored after the last push, so that nothing says whether its config counts")


def statuses_follow_from_the_config(e: Evidence) -> Iterator[str]:
    """The threshold and the status of a score are those of its config, and it has no other metric."""
    for found in e.results:
        if found["level"] == "trace":
            continue  # `gate` has the claims about them
        version = found["session_id"], found["segment"], found["revision"]
        criterion = e.config_of(version)["criteria"].get(found["metric"])
        if criterion is None:
            if found["metric"] not in e.optional or not e.is_by_file(version):
                yield f"{version}: its config has no metric {found['metric']}"
            continue
        threshold = criterion["threshold"] if isinstance(criterion, dict) else criterion
        status = "NOT_EVALUATED"
        if found["value"] is not None:
            status = "PASSED" if found["value"] >= threshold else "FAILED"
        if (found["threshold"], found["status"]) != (threshold, status):
            yield (
                f"{version}: {found['metric']} of {found['value']} is {found['status']} by {found['threshold']}, and its "
                f"config says {threshold}"
            )


CLAIMS: Mapping[str, tuple[Claim, ...]] = {
    claims.DOUBLED: (each_revision_has_one_config,),
    claims.DIFFERENT: (
        each_config_was_in_effect,
        configs_follow_the_log,
        the_last_config_counts_in_the_end,
        statuses_follow_from_the_config,
    ),
}
"""Claims that hold if configs are pushed."""
