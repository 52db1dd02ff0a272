"""Prints how far judges agree with people in numbers and in categories, for `traceweir trust agreement`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from traceweir.schemas.base import JsonObject
from traceweir.schemas.figures import counted
from traceweir.schemas.text import printable
from traceweir.streams.base.statistics.rate_intervals import Interval
from traceweir.streams.lab.trust import LabelledScores


def answers_document(group: LabelledScores) -> JsonObject:
    """Returns the agreement in numbers and in categories as JSON; null where there is none."""
    numbers = group.numbers
    categories = group.categories
    return {
        "numbers": None if numbers is None else asdict(numbers),
        "categories": None
        if categories is None
        else {
            "labels": categories.labels,
            "agreed": asdict(categories.agreed),
            "kappa": categories.kappa,
            "kappa_interval": None if categories.kappa_interval is None else [*categories.kappa_interval],
            "table": [
                {"people": people, "judge": judge, "labels": number}
                for (people, judge), number in sorted(categories.table.items())
            ],
        },
    }


def kappa_figure(value: float, interval: Interval | None) -> str:
    """Returns a kappa with its interval, if it has one.

    >>> kappa_figure(0.8, (0.71, 0.9)), kappa_figure(0.8, None)
    ('0.80 [0.71, 0.90]', '0.80')
    """
    return f"{value:.2f}" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")


def answers_lines(group: LabelledScores) -> Iterator[str]:
    """Yields what is known of the agreement in numbers and in categories, each in one line."""
    name = printable(group.measured.criterion, 100)
    if (numbers := group.numbers) is not None:
        interval = "" if numbers.low is None else f" [{numbers.low:+.3f}, {numbers.high:+.3f}]"
        yield (
            f"{name}: {counted(numbers.labels, 'label')} with a number: the judge gives {numbers.judge_mean:.3f} on average, "
            f"people {numbers.people_mean:.3f}: {numbers.difference:+.3f}{interval}"
        )
    if (categories := group.categories) is not None:
        agreed = categories.agreed
        kappa = (
            "" if categories.kappa is None else f", kappa {kappa_figure(categories.kappa, categories.kappa_interval)}"
        )
        yield (
            f"{name}: {counted(categories.labels, 'label')} with a category: the judge gives the same for {agreed.value:.2f} "
            f"[{agreed.low:.2f}, {agreed.high:.2f}]{kappa}"
        )
        for (people, judge), number in sorted(categories.table.items()):
            if people != judge:
                yield f"{name}: people {printable(people, 80)!r}, judge {printable(judge, 80)!r}: {number:,}"
