"""Loads the embedder of a setting.

The sentence-transformers library is an extra (`pip install '.[embeddings]'`) and is imported only for a model that
needs the library, because the import takes seconds and some hundred megabytes.
"""

import hashlib
import importlib.util
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from traceweir.scorers.embedding import Embedder, HashingEmbedder, Vectors

log = logging.getLogger(__name__)

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
INSTALL = "pip install '.[embeddings]' in a clone of Traceweir"


class EmbedderUnavailableError(RuntimeError):
    """The requested embedder is unavailable; the message contains the reason and a solution."""


def load_embedder(name: str) -> Embedder | None:
    """Returns the embedder of a setting; None if novelty is 0.5 for every trace.

    Args:
        name: `none`; `hashing` (compares words, without a model); `auto`; or the path or the name of a
            sentence-transformers model, which is downloaded by its name if it is not on this machine. `auto` is
            all-MiniLM-L6-v2 if this machine has the model, otherwise no embedder and a log line; `auto` downloads
            nothing.

    Raises:
        EmbedderUnavailableError: The named model cannot be loaded.
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
                log.info("novelty stays at 0.5, because no embedding model is available: %s", reason)
                return None
        case _:
            return SentenceTransformerEmbedder(name)


class SentenceTransformerEmbedder:
    """A model of the sentence-transformers library, on the device that the library selects.

    The model truncates texts longer than its window (256 word pieces for all-MiniLM-L6-v2).

    Args:
        model: Name on the Hugging Face hub, or path of a folder.
        local_only: Whether to use local files only, without network access.

    Raises:
        EmbedderUnavailableError: The library is not installed, or the model does not load.
    """

    runs_inline = False

    def __init__(self, model: str, *, local_only: bool = False) -> None:
        shown = without_credentials(model)
        if importlib.util.find_spec("sentence_transformers") is None:
            raise EmbedderUnavailableError(f"embedder {shown!r} needs sentence-transformers; install it with {INSTALL}")
        try:
            from sentence_transformers import SentenceTransformer

            self._model: Any = SentenceTransformer(model, local_files_only=local_only)
        except Exception as error:  # noqa: BLE001  # the library, the file system and the network raise errors of many types
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            if shown != model:  # the library's message can repeat the value, whole or in part
                reason = type(error).__name__
            raise EmbedderUnavailableError(
                f"embedder {shown!r} could not be loaded: {reason} "
                "(use the path of the model's folder, or the model's name on a machine with network access; "
                f"{INSTALL} installs the library)"
            ) from (None if shown != model else error)
        self.id = f"{Path(shown).name}@{_digest(self._model)}"
        self.dimensions: int = len(self.embed([""])[0])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Returns one row per text, computed in batches of the library's default size."""
        rows = self._model.encode(
            list(texts), normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
        )
        vectors: Vectors = np.asarray(rows, np.float32)
        return vectors


def without_credentials(name: str) -> str:
    """Returns the name of a model, with user, password, query and fragment hidden if the name is a URL.

    >>> without_credentials("https://me:hunter2@models.example/minilm?token=abc#part")
    'https://[hidden]@models.example/minilm?[hidden]'
    >>> without_credentials("sentence-transformers/all-MiniLM-L6-v2")
    'sentence-transformers/all-MiniLM-L6-v2'
    """
    found = _URL.match(name)
    if found is None:
        return name
    scheme, userinfo, rest = found.groups()
    address = re.split(r"[?#]", rest, maxsplit=1)
    return f"{scheme}{'[hidden]@' if userinfo else ''}{address[0]}{'?[hidden]' if len(address) > 1 else ''}"


_URL = re.compile(r"(?s)([A-Za-z][A-Za-z0-9+.-]*://)(.*@)?(.*)")
"""A URL: scheme, user and password up to the last `@` (a password can contain `/` unescaped), and the rest."""


def _digest(model: Any) -> str:
    """Returns twelve hex digits of the weights: equal weights have equal digests in any folder and under any name."""
    # The digest ignores names and order, because releases of the library name and order the same tensors differently.
    tensors = [
        hashlib.sha256(tensor.detach().cpu().float().numpy().tobytes()) for tensor in model.state_dict().values()
    ]
    return hashlib.sha256(b"".join(sorted(tensor.digest() for tensor in tensors))).hexdigest()[:12]
