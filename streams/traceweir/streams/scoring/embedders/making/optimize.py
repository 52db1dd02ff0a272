"""Writes a sentence-transformers model as a graph that runs without PyTorch, and checks its vectors."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from traceweir.scorers.embedding import Vectors
from traceweir.streams.scoring.embedders.graph_runtimes import IDS, MASK
from traceweir.streams.scoring.embedders.loading import WINDOW_TOKENS
from traceweir.streams.scoring.embedders.making.errors import ModelMakingError
from traceweir.streams.scoring.embedders.making.new_folder import new_folder, refuse_used
from traceweir.streams.scoring.embedders.making.source import ModelSource, load_source
from traceweir.streams.scoring.embedders.model_folder import About, write_about
from traceweir.streams.scoring.embedders.onnx_embedder import MODEL, TOKENIZER, OnnxEmbedder

MAX_DIFFERENCE = {"float32": 1e-5, "bfloat16": 1e-2}
"""Largest difference of a value of a vector from the original's, by what the graph computes in; a graph that differs more is refused."""
_OPSET = 17
_CHECKED = (
    "",
    "Cancel MY flight to Seoul!",
    "환불해 주세요. La reservación fue cancelada; naïve façade, 航班已取消 🙂",
    "Look up the reservation. " * 10,
    '{"reservation_id": "4WQ150", "passengers": [{"dob": "1990-05-01"}], "total": 1234.50} ' * 40,
)
"""Texts with which the graph is compared: empty, upper case, other scripts, and longer than windows."""


@dataclass(frozen=True)
class Optimized:
    """What was made."""

    id: str
    """Id of the new embedder."""
    made_from: str
    """Id of the original."""
    difference: float
    """Largest difference of a value of a vector from the original's, on the texts of the check."""
    precision: str
    """What the graph computed in for this check: `float32` also if it is to run in bfloat16, on a processor without it."""
    megabytes: float
    """Size of the folder."""


def optimize(model: str, out: Path, kind: Literal["onnx", "onnx-bfloat16"] = "onnx") -> Optimized:
    """Writes a folder with the graph of a model, checks its vectors, and says what it is.

    Args:
        model: Path of the model's folder, or the name of a model that this machine has.
        out: The new folder.
        kind: Whether the graph runs in single precision or in bfloat16. The check computes as this processor does.

    Raises:
        ModelMakingError: the model cannot be read, its graph has other vectors, or the folder cannot be written.
    """
    refuse_used(out)
    runtimes = ("onnxruntime", "openvino") if kind == "onnx-bfloat16" else ("onnxruntime",)
    source = load_source(model, ("onnx", *runtimes, "tokenizers"))
    with new_folder(out) as folder, _quiet():
        about = About(kind, source.name, source.id, _vectors(source, [""]).shape[1], source.prompt)
        _write_graph(source, folder / MODEL)
        tokenizer = source.tokenizer
        tokenizer.enable_truncation(source.model.max_seq_length or WINDOW_TOKENS)
        # Its own `save` hides the cause of a failure.
        (folder / TOKENIZER).write_text(tokenizer.to_str(), "utf-8")
        write_about(folder, about)
        try:
            made = OnnxEmbedder(folder, about)
            difference = float(np.abs(made.embed(_CHECKED) - _vectors(source, _CHECKED)).max())
        except OSError:
            raise
        except Exception as error:
            # Each library has errors of its own.
            raise _no_graph(source, error) from error
        if not difference <= MAX_DIFFERENCE[made.precision]:
            other = ", or make a graph with --precision float32" if made.precision == "bfloat16" else ""
            raise ModelMakingError(
                f"{source.name}: the vectors of its graph differ by {difference:.2g} from the model's; at most "
                f"{MAX_DIFFERENCE[made.precision]:g} is allowed. Use the model as it is{other}"
            )
        size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    return Optimized(made.id, source.id, difference, made.precision, size)


def _vectors(source: ModelSource, texts: tuple[str, ...] | list[str]) -> Vectors:
    found: Vectors = source.model.encode(
        list(texts), normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
    ).astype(np.float32)
    return found


def _write_graph(source: ModelSource, path: Path) -> None:
    """Exports the model with its pooling, and joins operations as far as ONNX Runtime knows the architecture."""
    import torch
    from onnxruntime.transformers.fusion_options import FusionOptions
    from onnxruntime.transformers.optimizer import optimize_model

    class Whole(torch.nn.Module):  # type: ignore[misc]  # torch is not checked
        def __init__(self) -> None:
            super().__init__()
            self.model = source.model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            found = self.model({IDS: input_ids, MASK: attention_mask})
            return torch.nn.functional.normalize(found["sentence_embedding"])

    example = torch.tensor([[5, 6, 7], [5, 6, 0]]), torch.tensor([[1, 1, 1], [1, 1, 0]])
    axes = {0: "texts", 1: "tokens"}
    try:
        with torch.no_grad():
            torch.onnx.export(
                Whole().eval(),
                example,
                str(path),
                input_names=[IDS, MASK],
                output_names=["embedding"],
                dynamic_axes={IDS: axes, MASK: axes, "embedding": {0: "texts"}},
                opset_version=_OPSET,
                # Its successor needs two more packages, and writes a graph that is not recognised.
                dynamo=False,
            )
        # Heads and sizes are read from the graph.
        joined = optimize_model(str(path), "bert", optimization_options=FusionOptions("bert"), opt_level=0)
        joined.save_model_to_file(str(path))
    except OSError:
        raise
    except Exception as error:
        raise _no_graph(source, error) from error


def _no_graph(source: ModelSource, error: Exception) -> ModelMakingError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return ModelMakingError(
        f"{source.name}: no graph could be made: {reason}. Use the model as it is, or `traceweir embedder distill`"
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Hides warnings of the libraries about their own parts; the check of the vectors is what counts."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
