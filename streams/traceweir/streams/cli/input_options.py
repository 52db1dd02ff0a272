"""The options of the commands that read an input file: the file, its format, and the domain of its transcripts."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperOption

from traceweir.streams.cli.command_app import PlainCommand

DEFAULT_FORMAT = "traceweir"


class InputCommand(PlainCommand):
    """A command with `--format`, whose help lists the names and descriptions in the registry of formats.

    The registry is imported only for the help: the import takes some tenths of a second.
    """

    # Any: the types come from typer's own copy of click or from the package click, depending on typer's version.
    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Writes the help with every available format."""
        from traceweir.streams.intake.formats.registry import BUILT_IN, known_formats

        for parameter in self.params:
            if isinstance(parameter, TyperOption) and parameter.name == "format":
                described = [f"`{each.name}`: {each.description}." for each in BUILT_IN.values()]
                installed = [f"`{name}`." for name in known_formats() if name not in BUILT_IN]
                parameter.help = " ".join([*described, *installed])
        super().format_help(ctx, formatter)


def check_format(name: str | None) -> str | None:
    """Returns the name of a format, or None for none.

    Raises:
        typer.BadParameter: no usable format has this name.
    """
    if name is None:
        return None
    from traceweir.streams.intake.formats.registry import UnusableFormatError, input_format

    try:
        return input_format(name).name
    except UnusableFormatError as error:
        raise typer.BadParameter(str(error)) from None


Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="JSON Lines or a JSON array; evaluation rows also as `.csv` or `.parquet`; one file or, with `--format "
        "otlp`, several; `-` reads standard input.",
        show_default=False,
    ),
]
FormatName = Annotated[str, typer.Option("--format", metavar="FORMAT", callback=check_format)]
TaskDomain = Annotated[str, typer.Option(help="Domain of a transcript without a domain of its own.")]
