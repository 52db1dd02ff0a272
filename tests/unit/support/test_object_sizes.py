"""The sizes of objects are found without naming them: in attributes, slots, closures, tables inside tables, and bounded caches not."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from functools import lru_cache

from tests.support.object_sizes import grown, sizes


class Shelf:
    __slots__ = ("__hidden", "books", "empty")

    def __init__(self) -> None:
        self.books = {"a": [1, 2, 3], "b": [4]}
        self.__hidden = deque([1, 2])


class Library:
    def __init__(self) -> None:
        self.shelves = [Shelf(), Shelf()]
        self.newest: deque[int] = deque([1, 2], maxlen=2)
        self.lend = lending()


def lending() -> Callable[[str], None]:
    lent: set[str] = set()

    def lend(name: str) -> None:
        lent.add(name)

    return lend


def test_each_container_counts_at_its_place() -> None:
    counts = sizes({"library": Library()})
    assert counts["Library.shelves"] == 2
    assert counts["Shelf.books"] == 4
    assert counts["Shelf.books[]"] == 8
    assert counts["Shelf._Shelf__hidden"] == 4
    assert counts["objects of Shelf"] == 2


def test_what_a_function_keeps_counts() -> None:
    library = Library()
    library.lend("a book")
    assert sizes({"library": library})["lending.<locals>.lend.lent"] == 1


def test_what_states_its_bound_does_not_count() -> None:
    @lru_cache(maxsize=100)
    def double(number: int) -> list[int]:
        return [number] * 2

    before = sizes({"double": double})
    double(7)
    assert sizes({"double": double}) == before
    assert sizes({"library": Library()})["Library.newest"] == 0


def test_an_object_that_two_places_have_counts_once() -> None:
    shelf = Shelf()
    assert sizes({"one": [shelf], "two": [shelf]})["objects of Shelf"] == 1


def test_what_is_left_out_leads_nowhere() -> None:
    counts = sizes({"library": Library()}, leaves_out=lambda found: isinstance(found, Shelf))
    assert counts["Library.shelves"] == 2
    assert counts["Shelf.books"] == 0


def test_only_what_is_larger_in_each_late_sample_has_grown() -> None:
    early = [Counter(leak=1, varies=5, full=9), Counter(leak=3, varies=1, full=9)]
    late = [Counter(leak=5, varies=4, full=9, new=1), Counter(leak=6, varies=9, full=9, new=2)]
    assert grown(early, late) == {"leak": (3, 5), "new": (0, 1)}
    assert grown(early, late, allowed=1) == {"leak": (3, 5)}
