"""The embedder that a setting names, and the way in which many sessions share one.

A sentence-transformers model is an extra (`pip install '.[embeddings]'`) and is imported only when one is asked for:
the import alone takes seconds and some hundred megabytes.
"""

import asyncio
import hashlib
import importlib.util
import logging
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from traceweir.scorers.embedding import Embedder, HashingEmbedder, Vectors

log = logging.getLogger(__name__)

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
INSTALL = "pip install '.[embeddings]' in a clone of Traceweir"


class EmbedderUnavailableError(RuntimeError):
    """The embedder that was asked for cannot be had; the message says what would help."""


def load_embedder(name: str) -> Embedder | None:
    """The embedder of a setting.

    Args:
        name: `none`; `hashing` (shared words, no model); `auto` (all-MiniLM-L6-v2 if it lies on this machine, else none, with a
            line in the log: nothing is downloaded unasked); or a sentence-transformers model, by path or by a name, which is
            downloaded if it is not here yet.

    Returns:
        None where novelty is to be 0.5 for every trace.

    Raises:
        EmbedderUnavailableError: The model named cannot be loaded.
    """
    match name:
        case "none":
            return None
        case "hashing":
            return HashingEmbedder()
        case "auto":
            try:
                return SentenceTransformerEmbedder(DEFAULT_MODEL, local_only=True)
            except EmbedderUnavailableError as reason:
                log.info("novelty stays at 0.5, as no embedding model is at hand: %s", reason)
                return None
        case _:
            return SentenceTransformerEmbedder(name)


class SentenceTransformerEmbedder:
    """A model of the sentence-transformers library, on whichever device the library picks.

    Texts longer than the model's window are cut by the model (256 word pieces for all-MiniLM-L6-v2).

    Args:
        model: Name on the Hugging Face hub, or path of a folder.
        local_only: Never reach for the network.

    Raises:
        EmbedderUnavailableError: The library is not installed, or the model does not load.
    """

    runs_inline = False

    def __init__(self, model: str, *, local_only: bool = False) -> None:
        if importlib.util.find_spec("sentence_transformers") is None:
            raise EmbedderUnavailableError(f"embedder {model!r} needs sentence-transformers; install it with {INSTALL}")
        try:
            from sentence_transformers import SentenceTransformer

            self._model: Any = SentenceTransformer(model, local_files_only=local_only)
        except Exception as error:  # a foreign library, a file system and a network: anything may come
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise EmbedderUnavailableError(
                f"embedder {model!r} could not be loaded: {reason} "
                f"(give the path of a model's folder, or its name on a machine with network; {INSTALL} installs the library)"
            ) from error
        self.id = f"{Path(model).name}@{_digest(self._model)}"
        self.dimensions: int = len(self.embed([""])[0])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row per text, in batches of the library's size."""
        rows = self._model.encode(
            list(texts), normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
        )
        vectors: Vectors = np.asarray(rows, np.float32)
        return vectors


class Batching:
    """Lets many coroutines share an embedder: what they ask for while one batch runs becomes the next.

    Nobody waits for a batch to fill. The embedder runs in one thread of its own, unless it says that it is quick enough to
    run inline.

    Args:
        embedder: What embeds; never called from two threads at once.
        max_batch: Most texts of one call.
    """

    def __init__(self, embedder: Embedder, max_batch: int = 64) -> None:
        self.embedder = embedder
        self._max_batch = max_batch
        self._waiting: deque[tuple[str, asyncio.Future[Vectors]]] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedder")
        self._runner: asyncio.Task[None] | None = None

    async def embed(self, text: str) -> Vectors:
        """The vector of a text.

        Raises:
            Exception: Whatever the embedder raised for the batch that this text was in; other batches are not touched.
        """
        if self.embedder.runs_inline:
            vector: Vectors = self._embed([text])[0]
            return vector
        future: asyncio.Future[Vectors] = asyncio.get_running_loop().create_future()
        self._waiting.append((text, future))
        if self._runner is None:
            self._runner = asyncio.create_task(self._run(), name="embedder")
        return await future

    async def close(self) -> None:
        """Cancel who still waits, and return when the thread has ended the batch that it is at."""
        while self._waiting:
            self._waiting.popleft()[1].cancel()
        if self._runner is not None:
            await asyncio.wait([self._runner])
        self._thread.shutdown()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while batch := self._next_batch():
                try:
                    vectors = await loop.run_in_executor(self._thread, self._embed, [text for text, _ in batch])
                except Exception as error:  # noqa: BLE001 (it belongs to the callers, each of whom gets it)
                    for future in (future for _, future in batch if not future.done()):
                        future.set_exception(error)
                else:
                    for (_, future), vector in zip(batch, vectors, strict=True):
                        if not future.done():
                            future.set_result(vector)
        finally:
            self._runner = None

    def _next_batch(self) -> list[tuple[str, asyncio.Future[Vectors]]]:
        batch: list[tuple[str, asyncio.Future[Vectors]]] = []
        while self._waiting and len(batch) < self._max_batch:
            text, future = self._waiting.popleft()
            if not future.done():  # its caller has gone
                batch.append((text, future))
        return batch

    def _embed(self, texts: list[str]) -> Vectors:
        vectors = self.embedder.embed(texts)
        if vectors.shape != (len(texts), self.embedder.dimensions):
            raise ValueError(
                f"embedder {self.embedder.id} gave an array of shape {vectors.shape} for {len(texts)} texts, "
                f"not one vector of {self.embedder.dimensions} for each"
            )
        return vectors


def _digest(model: Any) -> str:
    """Twelve hex digits of the weights: the same model has one id wherever it lies, and other weights under its name another."""
    # Of the values alone, in an order of their own: releases of the library name and order the same tensors differently.
    tensors = [
        hashlib.sha256(tensor.detach().cpu().float().numpy().tobytes()) for tensor in model.state_dict().values()
    ]
    return hashlib.sha256(b"".join(sorted(tensor.digest() for tensor in tensors))).hexdigest()[:12]
