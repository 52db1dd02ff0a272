"""Compares two selections result by result, with texts as the dashboard may show them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from traceweir.streams.board.dashboard.content import Content, shown
from traceweir.streams.board.store.diff import TooManyResultsError, diff
from traceweir.streams.board.store.selection import Readable, Selection
from traceweir.streams.lab.comparison.compare import NoOverlapError
from traceweir.streams.lab.comparison.document import Diff


class NoDiffError(Exception):
    """Two selections cannot be compared result by result; the message says why, and what to do."""


def shown_diff(store: Readable, first: Selection, second: Selection, content: Content) -> Diff:
    """Returns what differs between two selections, as `traceweir diff` prints it; the base is the first.

    Raises:
        NoDiffError: the selections have nothing in common or too many results.
        StoreError: the store cannot answer.
    """
    return shown_comparison(lambda: diff(store, first, second), content)


def shown_comparison(compare: Callable[[], Any], content: Content) -> Diff:
    """Returns what `compare` returns, with texts as the dashboard may show them.

    Raises:
        NoDiffError: there is nothing in common or there are too many results.
        StoreError: the store cannot answer.
    """
    try:
        return Diff.model_validate(shown(compare(), content))
    except (NoOverlapError, TooManyResultsError) as error:
        raise NoDiffError(str(error)) from None
