"""An embedder that runs with ONNX Runtime, without PyTorch. `traceweir embedder optimize` makes its folder."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from traceweir.scorers.embedding import Vectors
from traceweir.streams.cores import usable_cores
from traceweir.streams.scoring.length_groups import LengthGroups
from traceweir.streams.scoring.model_folder import About, embedder_id

MODEL, TOKENIZER = "model.onnx", "tokenizer.json"


class OnnxEmbedder:
    """A sentence-transformers model as a graph, with its pooling, and with its tokenizer.

    The tokenizer cuts texts at the window of the model. `OMP_NUM_THREADS` limits the threads; unset, there is one for
    each core that this process may use.

    Args:
        folder: The folder.
        about: Its description.

    Raises:
        ImportError: onnxruntime or tokenizers is not installed.
        Exception: the graph or the tokenizer cannot be used; both libraries have errors of their own.
    """

    runs_inline = False

    def __init__(self, folder: Path, about: About) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # a group per core, see `length_groups`
        self._session: Any = onnxruntime.InferenceSession(
            str(folder / MODEL), options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer: Any = Tokenizer.from_file(str(folder / TOKENIZER))
        self._tokenizer.no_padding()
        self._prompt = about.prompt
        self._groups = LengthGroups(thread_count())
        self.id, self.dimensions = embedder_id(folder, about), about.dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Returns one row per text."""
        found = self._tokenizer.encode_batch_fast([self._prompt + encodable(text) for text in texts])
        tokens = [np.array(each.ids, np.int64) for each in found]
        return self._groups.embed(
            [len(each) for each in tokens], self.dimensions, lambda group: self._run(tokens, group)
        )

    def _run(self, tokens: Sequence[npt.NDArray[np.int64]], group: Sequence[int]) -> Vectors:
        ids = np.zeros((len(group), max(len(tokens[index]) for index in group)), np.int64)
        mask = np.zeros_like(ids)  # what it masks has no effect, whatever its id
        for row, index in enumerate(group):
            ids[row, : len(tokens[index])] = tokens[index]
            mask[row, : len(tokens[index])] = 1
        vectors: Vectors = self._session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
        return vectors


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
