"""Matches the expected tool calls with those made, each with a call of its own."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice

from traceweir.schemas.invocation import FunctionCall
from traceweir.scorers.metrics.call_comparison import CallComparison, KeyedCall


class CallPool:
    """Calls that were made, each of which at most one expected call takes.

    Calls with equal arguments are one node of a graph, with a capacity. An expected call that finds no free call moves
    another one along an augmenting path, so that the number of matched calls is the largest that is possible. Where the
    kind of a call tells all, this takes constant time. With loose rules the time grows with the number of different
    pairs of a kind, and `CallComparison` bounds it.
    """

    def __init__(self, comparison: CallComparison, made: Iterable[KeyedCall]) -> None:
        """Takes the calls.

        Args:
            comparison: Compares two calls.
            made: The calls that were made.
        """
        self._comparison = comparison
        self._free: Counter[int] = Counter()
        self._made: dict[int, KeyedCall] = {}
        self._of_kind: dict[int, list[int]] = {}
        for each in made:
            if each.identity not in self._made:
                self._made[each.identity] = each
                self._of_kind.setdefault(each.kind, []).append(each.identity)
            self._free[each.identity] += 1
        # Both by the identity of an expected call.
        self._equal: dict[int, Sequence[int]] = {}
        self._unmatched: set[int] = set()
        # Both by the identity of a call that was made.
        self._taken_by: dict[int, Counter[int]] = {}
        self._full: set[int] = set()

    def take(self, expected: KeyedCall) -> bool:
        """Matches an expected call, if that is possible together with all that are matched.

        Raises:
            TooManyComparisonsError: the comparison has taken too many steps.
        """
        start = expected.identity
        if start in self._unmatched:
            return False
        self._compare(expected)
        reached_from: dict[int, int] = {}
        moved_from: dict[int, int] = {}
        waiting = deque([start])
        known = {start}
        while waiting:
            wanted = waiting.popleft()
            for made in self._equal[wanted]:
                self._comparison.spend()
                if made in reached_from or made in self._full:
                    continue
                reached_from[made] = wanted
                if self._free[made]:
                    self._move(start, made, reached_from, moved_from)
                    return True
                for other in self._taken_by[made].keys() - known:
                    known.add(other)
                    moved_from[other] = made
                    waiting.append(other)
        # No call of a search without success leads to a free one, nor will it after others have been taken.
        self._full |= reached_from.keys()
        self._unmatched |= known
        return False

    @property
    def left(self) -> Iterator[FunctionCall]:
        """The calls that no expected call has taken, in order; calls with equal arguments once."""
        return (each.call for identity, each in self._made.items() if self._free[identity])

    def _compare(self, expected: KeyedCall) -> None:
        if expected.identity in self._equal:
            return
        found = self._of_kind.get(expected.kind, [])
        if expected.is_loose:
            found = [made for made in found if self._comparison.are_equal(expected.call, self._made[made].call)]
        self._equal[expected.identity] = found

    def _move(self, start: int, end: int, reached_from: dict[int, int], moved_from: dict[int, int]) -> None:
        """Takes a free call, and gives each expected call of the path the call that leads to it."""
        self._free[end] -= 1
        made = end
        while True:
            wanted = reached_from[made]
            self._taken_by.setdefault(made, Counter())[wanted] += 1
            if wanted == start:
                return
            made = moved_from[wanted]
            of_made = self._taken_by[made]
            of_made[wanted] -= 1
            if not of_made[wanted]:
                del of_made[wanted]


@dataclass(frozen=True, slots=True)
class Match:
    """How far the calls made match the expected ones."""

    matched: int
    """Number of the expected calls, from the first on, that have a call of their own."""
    left: Sequence[FunctionCall]
    """Calls that were made at the place of the first expected call without one, at most `MAX_LEFT`."""


MAX_LEFT = 1_000


def match_exactly(
    expected: Sequence[FunctionCall], answers: Sequence[Sequence[FunctionCall]], comparison: CallComparison
) -> Match:
    """Matches each answer with as many expected calls as it has calls, in any order within the answer."""
    wanted = comparison.keyed(expected)
    ends = accumulate(map(len, answers))
    matched = 0
    for answer, end in zip(answers, ends, strict=True):
        pool = CallPool(comparison, comparison.keyed(answer))
        for each in wanted[matched:end]:
            if not pool.take(each):
                return Match(matched, _first(pool.left))
            matched += 1
        if matched < end:
            return Match(matched, _first(pool.left))
    return Match(matched, [])


def match_in_order(
    expected: Sequence[FunctionCall], answers: Sequence[Sequence[FunctionCall]], comparison: CallComparison
) -> Match:
    """Matches the expected calls in their order, in any order within an answer; other calls may lie between.

    To take as many expected calls as possible from each answer is never worse than to take fewer, because fewer are then
    left for the answers after it.
    """
    wanted = comparison.keyed(expected)
    matched = 0
    latest: tuple[int, CallPool] | None = None
    for number, answer in enumerate(answers):
        if matched == len(wanted):
            break
        pool = CallPool(comparison, comparison.keyed(answer))
        while matched < len(wanted) and pool.take(wanted[matched]):
            matched += 1
            latest = number, pool
    if latest is None:
        return Match(matched, _first(chain.from_iterable(answers)))
    return Match(matched, _first(chain(latest[1].left, chain.from_iterable(answers[latest[0] + 1 :]))))


def match_in_any_order(
    expected: Sequence[FunctionCall], made: Sequence[FunctionCall], comparison: CallComparison
) -> Match:
    """Matches the expected calls in any order, up to the first that has no call of its own."""
    pool = CallPool(comparison, comparison.keyed(made))
    matched = 0
    for each in comparison.keyed(expected):
        if not pool.take(each):
            break
        matched += 1
    return Match(matched, _first(pool.left))


def number_matched(expected: Sequence[FunctionCall], made: Sequence[FunctionCall], comparison: CallComparison) -> int:
    """Returns the largest number of expected calls that can each have an equal call of its own, in any order."""
    pool = CallPool(comparison, comparison.keyed(made))
    return sum(pool.take(each) for each in comparison.keyed(expected))


def _first(calls: Iterable[FunctionCall]) -> list[FunctionCall]:
    return list(islice(calls, MAX_LEFT))
