"""`traceweir embedder`: makes faster embedders from a model on this machine."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from traceweir.streams.cli.command_app import CommandApp

embedder_app = CommandApp(help="Make faster embedders from a model on this machine.", no_args_is_help=True)

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="Folder of a sentence-transformers model, or the name of one that this machine has.",
        show_default=False,
    ),
]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="The new folder.", show_default=False)]


class Precision(StrEnum):
    """What the numbers of a graph are."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


PrecisionOption = Annotated[
    Precision,
    typer.Option(
        "--precision",
        help="`float32` computes the same vectors, with ONNX Runtime. `bfloat16` takes less than half of that CPU on a "
        "processor with AVX512_BF16 or AMX, with OpenVINO; its vectors differ slightly.",
    ),
]


@embedder_app.command()
def optimize(model: Model, out: Out, precision: PrecisionOption = Precision.FLOAT32) -> None:
    """Write a model as a graph, which takes less CPU and no PyTorch.

    The vectors are compared with those of the model; a graph whose vectors differ by more than 1e-5, or 0.01 if it
    computes in bfloat16, is not written.
    `TRACEWEIR_EMBEDDER=DIR` uses it. Nothing is downloaded. Exit code 1: the model cannot be used, or the folder cannot
    be written.

    Example: `traceweir embedder optimize models/all-MiniLM-L6-v2 --out models/minilm-onnx`
    """
    from traceweir.streams.cli.terminal import complain
    from traceweir.streams.scoring.embedders.making.optimize import optimize as made_by

    made = made_by(model, out, "onnx-bfloat16" if precision is Precision.BFLOAT16 else "onnx")
    lacking = precision is Precision.BFLOAT16 and made.precision == "float32"
    why = ", because this processor has no instructions for bfloat16" if lacking else ""
    complain(
        f"{out}: embedder {made.id}, made from {made.made_from}; {made.megabytes:.0f} MB; values of vectors differ by "
        f"at most {made.difference:.1g}, computed in {made.precision}{why}. Use it with TRACEWEIR_EMBEDDER={out}"
    )


@embedder_app.command()
def distill(model: Model, out: Out) -> None:
    """Distil a static model: a vector for each token of the vocabulary, so that no model runs for a text.

    Its vectors are other ones than those of the model, so that novelty changes: measure it on your own traces before
    you use it. `TRACEWEIR_EMBEDDER=DIR` uses it. Nothing is downloaded. Exit code 1: the model cannot be used, or the
    folder cannot be written.

    Example: `traceweir embedder distill models/all-MiniLM-L6-v2 --out models/minilm-static`
    """
    from traceweir.streams.cli.terminal import complain
    from traceweir.streams.scoring.embedders.making.distill import distill as made_by

    made = made_by(model, out)
    complain(
        f"{out}: embedder {made.id}, made from {made.made_from}; {made.tokens} tokens of {made.dimensions} dimensions, "
        f"{made.megabytes:.0f} MB. Use it with TRACEWEIR_EMBEDDER={out}"
    )
