"""Decides where to read on in an input: compares the stored offset with the log that the topic has now.

A stored offset belongs to one log. A topic that was deleted and created again has another log, with records at the same
offsets. Topic ids tell such logs apart; the end alone does not, once the new log has grown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from traceweir.streams.base.errors import WorkerError


class InputLogs(NamedTuple):
    """The logs of the inputs of a partition, as the cluster has them now."""

    ids: Mapping[str, str]
    """By topic, an id of the form `cluster/topic`; a topic is missing if its broker has no topic ids."""
    ends: Mapping[str, int]
    """By input, the offset after the last record, committed or not."""


class OtherClusterError(WorkerError):
    """The stored offsets are those of another cluster; the message contains the way out."""


class StartPosition(NamedTuple):
    """Where to read on."""

    offset: int
    missed: int = 0
    """Number of offsets that were never read and are not there any more."""
    is_new_log: bool = False
    """Whether the stored offset does not belong to this log."""
    problem: str | None = None
    """What the operator should know; None if everything is as expected."""


def start_of(
    place: str, stored: int | None, stored_id: str | None, begin: int, end: int | None, log_id: str | None
) -> StartPosition:
    """Returns where to read on in an input.

    >>> start_of("traces/0", 70, "a/1", 0, 90, "a/1")
    StartPosition(offset=70, missed=0, is_new_log=False, problem=None)

    Args:
        place: Topic and partition, for the messages.
        stored: The offset of the last checkpoint; None: this input was never read.
        stored_id: The id of the log to which `stored` belongs; None: an earlier version has not stored it.
        begin: The first offset that can be read.
        end: The offset after the last record, committed or not; None: it was not asked for.
        log_id: The id of the log; None: its broker has no topic ids.

    Raises:
        OtherClusterError: the stored offset belongs to a log of another cluster.
    """
    if stored is None:
        return StartPosition(begin)
    if None not in (stored_id, log_id) and stored_id != log_id:
        if _cluster(stored_id) != _cluster(log_id):
            raise OtherClusterError(
                f"the state of {place} belongs to another cluster ({_cluster(stored_id)}; this one is {_cluster(log_id)}): a "
                "mirrored changelog holds the offsets of the cluster that it comes from. Delete the changelog topic here, "
                "create it again with `traceweir topics create`, and start the worker again: it reads the inputs from their "
                "beginning"
            )
        return StartPosition(
            begin,
            is_new_log=True,
            problem=f"{place} was deleted and created again (its id was {stored_id}, and is {log_id}); it is read from its "
            f"beginning, offset {begin}, and no longer from offset {stored}",
        )
    if stored == begin - 1:
        # The last entry of a log is often the marker of a transaction, which is no record.
        return StartPosition(begin)
    if stored < begin:
        return StartPosition(
            begin,
            missed=begin - stored,
            problem=f"{begin - stored} offsets of {place} were never read: retention has deleted the records from {stored} to "
            f"{begin - 1}. The worker was down, or behind, for longer than the topic's retention.ms or retention.bytes allow",
        )
    if end is not None and stored > end:
        if None in (stored_id, log_id):
            return StartPosition(
                begin,
                is_new_log=True,
                problem=f"{place} ends at offset {end}, before the stored offset {stored}; the topic was created again, and "
                f"is read from its beginning, offset {begin}",
            )
        return StartPosition(
            end,
            is_new_log=True,
            problem=f"{place} ends at offset {end}, before the stored offset {stored}: the log has lost records that were "
            "read (an unclean election, or a restored broker). It is read on from its end; records that were written again "
            "below that are not read",
        )
    return StartPosition(stored)


def _cluster(log_id: str | None) -> str:
    return (log_id or "").partition("/")[0]
