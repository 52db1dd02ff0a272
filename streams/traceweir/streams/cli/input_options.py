"""The options of the commands that read an input file: the file, its format, and the domain of its transcripts."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

DEFAULT_FORMAT = "traceweir"


class InputCommand(TyperCommand):
    """A command with `--format`. Its help asks the registry of formats for their names and descriptions.

    It asks only when the help is wanted: the import takes some tenths of a second, which other commands need not wait for.
    """

    def format_help(
        self, ctx: Any, formatter: Any
    ) -> None:  # Any: typer's own click, or the package, by typer's version
        """Write the help with every format that can be chosen."""
        from traceweir.streams.formats.registry import BUILT_IN, known_formats

        for parameter in self.params:
            if isinstance(parameter, TyperOption) and parameter.name == "format":
                parameter.metavar = f"<{'|'.join(known_formats())}>"
                parameter.help = " ".join(f"`{each.name}`: {each.description}." for each in BUILT_IN.values())
        super().format_help(ctx, formatter)


def _known(name: str) -> str:
    from traceweir.streams.formats.registry import UnusableFormatError, input_format

    try:
        return input_format(name).name
    except UnusableFormatError as error:
        raise typer.BadParameter(str(error)) from None


Input = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="JSON Lines or a JSON array; of rows also `.csv` and `.parquet`; `-` reads standard input.",
        show_default=False,
    ),
]
FormatName = Annotated[str, typer.Option("--format", metavar="FORMAT", callback=_known)]
TaskDomain = Annotated[str, typer.Option(help="Domain of a transcript that names none.")]
