"""An embedder whose model is a graph, without PyTorch. `traceweir embedder optimize` makes its folder."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from traceweir.scorers.embedding import Vectors
from traceweir.streams.base.cores import usable_cores
from traceweir.streams.scoring.embedders.graph_runtimes import Tokens, bfloat16, single_precision
from traceweir.streams.scoring.embedders.length_groups import LengthGroups
from traceweir.streams.scoring.embedders.model_folder import About, embedder_id

log = logging.getLogger(__name__)

MODEL = "model.onnx"
TOKENIZER = "tokenizer.json"


class OnnxEmbedder:
    """A sentence-transformers model as a graph, with its pooling, and with its tokenizer.

    The tokenizer cuts texts at the window of the model. `OMP_NUM_THREADS` limits the threads; unset, there is one for
    each core that this process may use.

    Args:
        folder: The folder.
        about: Its description.

    Raises:
        ImportError: onnxruntime or openvino, whichever runs the graph, or tokenizers cannot be imported.
        Exception: the graph or the tokenizer cannot be used; the libraries have errors of their own.
    """

    runs_inline = False

    def __init__(self, folder: Path, about: About) -> None:
        graph = folder / MODEL
        threads = thread_count()
        self.id = embedder_id(folder, about)
        self.dimensions = about.dimensions
        self.precision: Literal["float32", "bfloat16"] = "float32"
        """What the graph computes in on this processor."""
        if about.kind == "onnx-bfloat16":
            self._run, native = bfloat16(graph, threads)
            if native:
                self.precision = "bfloat16"
            else:
                log.warning(
                    "embedder %s was made for bfloat16, for which this processor has no instructions (AVX512_BF16 or AMX): "
                    "it computes in single precision, which takes more CPU. Use a processor that has them",
                    self.id,
                )
        else:
            self._run = single_precision(graph)
        from tokenizers import Tokenizer

        self._tokenizer: Any = Tokenizer.from_file(str(folder / TOKENIZER))
        self._tokenizer.no_padding()
        self._prompt = about.prompt
        self._groups = LengthGroups(threads)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Returns one row per text."""
        found = self._tokenizer.encode_batch_fast([self._prompt + encodable(text) for text in texts])
        tokens = [np.array(each.ids, np.int64) for each in found]
        return self._groups.embed(
            [len(each) for each in tokens], self.dimensions, lambda group: self._vectors(tokens, group)
        )

    def _vectors(self, tokens: Sequence[Tokens], group: Sequence[int]) -> Vectors:
        ids = np.zeros((len(group), max(len(tokens[index]) for index in group)), np.int64)
        # What it masks has no effect, whatever its id.
        mask = np.zeros_like(ids)
        for row, index in enumerate(group):
            ids[row, : len(tokens[index])] = tokens[index]
            mask[row, : len(tokens[index])] = 1
        return self._run(ids, mask)


def thread_count() -> int:
    """Returns the number of threads that embed at the same time."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    if limit.isdecimal() and int(limit):
        return int(limit)
    return usable_cores()


def encodable(text: str) -> str:
    """Returns a text without lone surrogates, which tokenizers refuse.

    >>> encodable("a\\ud800b")
    'a?b'
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
