"""The coordinator of transactions: producer ids, epochs, fencing, timeouts, and the markers that end a transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

NO_ERROR, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE = 0, 47, 48
INVALID_PRODUCER_ID_MAPPING, CONCURRENT_TRANSACTIONS = 49, 51

State = Literal["empty", "ongoing", "prepare commit", "prepare abort", "complete commit", "complete abort"]
Place = tuple[str, int]


class Surroundings(Protocol):
    """What a coordinator needs of its cluster."""

    def after(self, seconds: float, what: Callable[[], object]) -> object:
        """Calls a function later."""

    def marker_delay_s(self) -> float:
        """Draws the time until the markers of a transaction are written."""

    def mark(self, place: Place, producer: int, epoch: int, *, commit: bool) -> None:
        """Writes a marker to a partition."""

    def end_offsets(self, group: str, producer: int, *, commit: bool) -> None:
        """Makes the offsets that a producer has committed to a group visible, or forgets them."""


class Transaction:
    """The state of one transactional id."""

    def __init__(self, producer: int, timeout_s: float) -> None:
        self.producer, self.epoch, self.timeout_s = producer, 0, timeout_s
        self.state: State = "empty"
        self.places: dict[Place, None] = {}
        self.groups: dict[str, None] = {}
        self.number = 0
        """Counts the transactions, so that the timer of an earlier one does nothing."""


class TransactionCoordinator:
    """Coordinates all transactional ids of a cluster.

    Args:
        surroundings: The cluster.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        self._around = surroundings
        self._transactions: dict[str, Transaction] = {}
        self._next_producer = 1000

    def producer_id(self) -> int:
        """Returns a new producer id."""
        self._next_producer += 1
        return self._next_producer

    def start(self, name: str, timeout_ms: int) -> tuple[int, int, int]:
        """Fences the former producer of a transactional id; returns an error code, the producer id and the epoch."""
        found = self._transactions.get(name)
        if found is None:
            found = self._transactions[name] = Transaction(self.producer_id(), timeout_ms / 1000)
            return NO_ERROR, found.producer, found.epoch
        if found.state in ("prepare commit", "prepare abort"):
            return CONCURRENT_TRANSACTIONS, -1, -1
        found.timeout_s = timeout_ms / 1000
        if found.state == "ongoing":
            found.epoch += 1  # the former producer can do nothing any more
            self._end(found, commit=False)
            return CONCURRENT_TRANSACTIONS, -1, -1
        found.epoch += 1
        found.state = "empty"
        return NO_ERROR, found.producer, found.epoch

    def add(self, name: str, producer: int, epoch: int, places: list[Place], group: str | None = None) -> int:
        """Adds partitions, or a group, to the transaction of a producer; returns an error code."""
        found = self._transactions.get(name)
        if error := self._refuses(found, producer, epoch):
            return error
        assert found is not None
        if found.state in ("prepare commit", "prepare abort"):
            return CONCURRENT_TRANSACTIONS
        if found.state != "ongoing":
            found.state = "ongoing"
            found.number += 1
            number = found.number
            self._around.after(found.timeout_s, lambda: self._time_out(found, number))
        found.places.update(dict.fromkeys(places))
        if group is not None:
            found.groups[group] = None
        return NO_ERROR

    def end(self, name: str, producer: int, epoch: int, *, commit: bool) -> int:
        """Commits or aborts the transaction of a producer; returns an error code.

        The answer comes before the markers are written.
        """
        found = self._transactions.get(name)
        if error := self._refuses(found, producer, epoch):
            return error
        assert found is not None
        match found.state:
            case "ongoing":
                self._end(found, commit=commit)
                return NO_ERROR
            case "complete commit":
                return NO_ERROR if commit else INVALID_TXN_STATE
            case "complete abort":
                return INVALID_TXN_STATE if commit else NO_ERROR
            case "prepare commit":
                return CONCURRENT_TRANSACTIONS if commit else INVALID_TXN_STATE
            case "prepare abort":
                return INVALID_TXN_STATE if commit else CONCURRENT_TRANSACTIONS
            case _:
                return INVALID_TXN_STATE

    def verify(self, name: str, producer: int, epoch: int, place: Place) -> int:
        """Returns an error code unless a partition is part of the open transaction of a producer.

        The broker of the partition asks this before the transaction begins there.
        """
        found = self._transactions.get(name)
        if error := self._refuses(found, producer, epoch):
            return error
        assert found is not None
        if found.state in ("prepare commit", "prepare abort"):
            return CONCURRENT_TRANSACTIONS
        return NO_ERROR if found.state == "ongoing" and place in found.places else INVALID_TXN_STATE

    def accepts_offsets(self, name: str, producer: int, epoch: int, group: str) -> int:
        """Returns an error code for offsets that a producer commits to a group."""
        found = self._transactions.get(name)
        if error := self._refuses(found, producer, epoch):
            return INVALID_PRODUCER_EPOCH if error == INVALID_PRODUCER_ID_MAPPING else error
        assert found is not None
        return NO_ERROR if found.state == "ongoing" and group in found.groups else INVALID_TXN_STATE

    def forget(self) -> None:
        """Forgets the transactional ids without an open transaction, as after `transactional.id.expiration.ms`."""
        open_states = ("ongoing", "prepare commit", "prepare abort")
        self._transactions = {name: each for name, each in self._transactions.items() if each.state in open_states}

    def states(self) -> dict[str, State]:
        """Returns the state of each transactional id."""
        return {name: each.state for name, each in self._transactions.items()}

    def _refuses(self, found: Transaction | None, producer: int, epoch: int) -> int:
        if found is None or found.producer != producer:
            return INVALID_PRODUCER_ID_MAPPING
        return INVALID_PRODUCER_EPOCH if found.epoch != epoch else NO_ERROR

    def _time_out(self, found: Transaction, number: int) -> None:
        if found.state == "ongoing" and found.number == number:
            found.epoch += 1
            self._end(found, commit=False)

    def _end(self, found: Transaction, *, commit: bool) -> None:
        found.state = "prepare commit" if commit else "prepare abort"
        self._around.after(self._around.marker_delay_s(), lambda: self._complete(found, commit=commit))

    def _complete(self, found: Transaction, *, commit: bool) -> None:
        for place in found.places:
            self._around.mark(place, found.producer, found.epoch, commit=commit)
        for group in found.groups:
            self._around.end_offsets(group, found.producer, commit=commit)
        found.places, found.groups = {}, {}
        found.state = "complete commit" if commit else "complete abort"
