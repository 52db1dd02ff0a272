"""The options that many commands have: the config, the stages, and JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceweir.streams.base.topics import ALL_STAGES, STAGES, StageName

Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Evaluation config, such as ADK's test_config.json.")
]
Stages = Annotated[str, typer.Option(help="Stages that this process runs, separated by commas.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
DEFAULT_STAGES = ",".join(STAGES)


def chosen_stages(text: str) -> list[StageName]:
    """Returns the stages of `--stages`, in the order of processing.

    Raises:
        typer.BadParameter: a name is not that of a stage.
    """
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in ALL_STAGES]
    if unknown:
        raise typer.BadParameter(
            f"{', '.join(map(repr, unknown))} is not a stage; choose from {', '.join(ALL_STAGES)}",
            param_hint="--stages",
        )
    return [stage for stage in ALL_STAGES if stage in names]
