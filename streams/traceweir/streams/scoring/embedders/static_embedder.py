"""An embedder that adds up a stored vector for each token. `traceweir embedder distill` makes its folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from traceweir.scorers.embedding import Vectors
from traceweir.streams.scoring.embedders.model_folder import About, embedder_id
from traceweir.streams.scoring.embedders.onnx_embedder import TOKENIZER, encodable

VECTORS = "vectors.npy"
"""float32 array of shape (tokens, dimensions); the length of a row is the weight of its token."""
MAX_CHARACTERS = 20_000
"""Characters of a text that are read, so that the time for a single text has a limit."""


class StaticEmbedder:
    """The vector of a text is the sum of the vectors of its tokens, with length 1; word order has no effect.

    Args:
        folder: The folder.
        about: Its description.

    Raises:
        ImportError: tokenizers is not installed.
        ValueError: the vectors do not fit the description or the tokenizer.
        Exception: the tokenizer cannot be used; its library has errors of its own.
    """

    # A long text takes milliseconds, and a cached one none.
    runs_inline = False

    def __init__(self, folder: Path, about: About) -> None:
        from tokenizers import Tokenizer

        self._tokenizer: Any = Tokenizer.from_file(str(folder / TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._vectors: Vectors = np.load(folder / VECTORS, allow_pickle=False)
        expected = (self._tokenizer.get_vocab_size(), about.dimensions)
        if self._vectors.dtype != np.float32 or self._vectors.shape != expected:
            raise ValueError(
                f"{VECTORS} has {self._vectors.dtype} of shape {self._vectors.shape}, and not float32 of shape {expected}"
            )
        self.id = embedder_id(folder, about)
        self.dimensions = about.dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Returns one row per text; the row of a text without a known token is zero."""
        read = [encodable(text[:MAX_CHARACTERS]) for text in texts]
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, found in zip(rows, self._tokenizer.encode_batch_fast(read, add_special_tokens=False), strict=True):
            if found.ids:
                row[:] = self._vectors[found.ids].sum(axis=0)
        norms = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
        vectors: Vectors = rows / np.maximum(norms, np.finfo(np.float32).tiny)
        return vectors
