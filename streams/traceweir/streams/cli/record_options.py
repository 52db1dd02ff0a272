"""The options of the commands that read records of a topic: the time range, repeated filters, the limit, and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

SHOWN = 100
"""The number of records that a command shows without `--limit` and `--json`."""


# As typer.Option.
def since(records: str) -> Any:
    """Returns the option `--since`, the begin of the time range; `records` names what was written, in the plural."""
    return typer.Option(
        "--since",
        metavar="TIME",
        help=f"Only {records} written at this time or later: ISO 8601, or a duration before now such as `2h` "
        "(s, m, h, d, w).",
    )


def until(records: str) -> Any:
    """Returns the option `--until`, the end of the time range."""
    return typer.Option("--until", metavar="TIME", help=f"Only {records} written before this time.")


def repeated(option: str, metavar: str, only: str) -> Any:
    """Returns a filter that can be repeated: a record matches if it has one of the values.

    Args:
        option: The name of the option, such as `--stage`.
        metavar: The name of the value in the help.
        only: What the filter leaves, as a sentence that begins with `Only`.
    """
    return typer.Option(option, metavar=metavar, help=f"{only} Can be repeated.")


def latest(minimum: int) -> Any:
    """Returns the option `--limit`: the number of the latest records that are shown, from `minimum`."""
    return typer.Option(
        "--limit", min=minimum, help=f"Only the latest N. [default: {SHOWN}; with --json all]", show_default=False
    )


Metrics = Annotated[
    list[str] | None,
    repeated("--metric", "NAME", "Only scores of this metric, by its full or short name."),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="NAME=VALUE",
        help="Only scores with this app_name, agent_name, agent_version, environment, model, user_id, judge or labels.NAME. "
        "Can be repeated: all names must fit, and of several values of one name, one.",
    ),
]


def where_option(given: Sequence[str] | None) -> dict[str, frozenset[str]]:
    """Returns the wanted values of each dimension that `--where` names.

    Raises:
        typer.BadParameter: a value is not `NAME=VALUE` with the name of a dimension.
    """
    from traceweir.streams.tools.results.selection import wanted_dimensions

    try:
        return wanted_dimensions(given or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--where") from None
