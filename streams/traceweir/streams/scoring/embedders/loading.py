"""Loads the embedder of a setting.

The sentence-transformers library is an extra (`pip install '.[embeddings]'`) and is imported only for a model that
needs the library, because the import takes seconds and some hundred megabytes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traceweir.scorers.embedding import Embedder, Vectors
from traceweir.streams.scoring.embedders.model_folder import ABOUT, is_embedder_folder, read_about

# Which needs numpy, as each embedder does, whose import takes a tenth of the CPU of a small command.
if TYPE_CHECKING:
    from traceweir.streams.scoring.embedders.length_groups import LengthGroups

log = logging.getLogger(__name__)

_EXTRAS = {"onnx": "embeddings-onnx", "onnx-bfloat16": "embeddings-openvino", "static": "embeddings-static"}
"""The extra that runs each kind of folder."""
_LIBRARIES = ("onnxruntime", "openvino", "tokenizers")
"""What these extras install."""
DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
INSTALL = "pip install '.[embeddings]' in a clone of Traceweir"


class EmbedderUnavailableError(RuntimeError):
    """The requested embedder is unavailable; the message contains the reason and a solution."""


def load_embedder(name: str) -> Embedder | None:
    """Returns the embedder of a setting; None if novelty is 0.5 for every trace.

    Args:
        name: `none`; `hashing` (compares words, without a model); `auto`; the path of a folder that
            `traceweir embedder` has made; or the path or the name of a sentence-transformers model, which is downloaded
            by its name if it is not on this machine. `auto` is all-MiniLM-L6-v2 if this machine has the model,
            otherwise no embedder and a log line; `auto` downloads nothing.

    Raises:
        EmbedderUnavailableError: the named model cannot be loaded.
    """
    match name:
        case "none":
            return None
        case "hashing":
            from traceweir.scorers.hashing_embedder import HashingEmbedder

            return HashingEmbedder()
        case "auto":
            try:
                return SentenceTransformerEmbedder(DEFAULT_MODEL, local_only=True)
            except EmbedderUnavailableError as reason:
                log.info("novelty stays at 0.5, because no embedding model is available: %s", reason)
                return None
        case _ if is_embedder_folder(Path(name)):
            return _folder_embedder(Path(name))
        case _:
            refuse_wrong_path(name)
            return SentenceTransformerEmbedder(name)


def check_embedder(name: str) -> None:
    """Checks what can be checked of a setting without loading a model: its path, and the libraries that it needs.

    Raises:
        EmbedderUnavailableError: a library is not installed, or the path is no model.
    """
    if name in ("none", "hashing", "auto") or is_embedder_folder(Path(name)):
        return
    refuse_wrong_path(name)
    _require_library(name)


def may_be_model(name: str) -> bool:
    """Returns whether an embedder of this setting can be a model, without loading it."""
    if name == "auto":
        return importlib.util.find_spec("sentence_transformers") is not None
    return name not in ("none", "hashing")


def _folder_embedder(folder: Path) -> Embedder:
    """Returns the embedder of a folder that `traceweir embedder` has made.

    Raises:
        EmbedderUnavailableError: a library is missing, or the folder cannot be used.
    """
    kind = "onnx"
    try:
        about = read_about(folder)
        kind = about.kind
        if kind == "static":
            from traceweir.streams.scoring.embedders.static_embedder import StaticEmbedder

            return StaticEmbedder(folder, about)
        from traceweir.streams.scoring.embedders.onnx_embedder import OnnxEmbedder

        return OnnxEmbedder(folder, about)
    except ImportError as error:
        install = f"pip install '.[{_EXTRAS[kind]}]' in a clone of Traceweir"
        if isinstance(error, ModuleNotFoundError) and error.name in _LIBRARIES:
            raise EmbedderUnavailableError(
                f"embedder {str(folder)!r} needs {error.name}; install it with {install}"
            ) from None
        raise EmbedderUnavailableError(
            f"embedder {str(folder)!r}: a library that it needs is installed and cannot be imported: {error} (remove that "
            f"library, and install it again with {install})"
        ) from error
    except Exception as error:
        # The libraries raise errors of many types for a file that they cannot read.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise EmbedderUnavailableError(
            f"embedder {str(folder)!r} could not be loaded: {reason} (make the folder again with `traceweir embedder`)"
        ) from error


def refuse_wrong_path(name: str) -> None:
    """Refuses a path that is no model, because the library would take it for the name of a model to download.

    Raises:
        EmbedderUnavailableError: the path does not exist, or has no model.
    """
    path = Path(name)
    if path.is_dir():
        if not any((path / file).is_file() for file in ("modules.json", "config.json")):
            raise EmbedderUnavailableError(
                f"embedder {name!r} is a folder without a model: it has neither {ABOUT} nor modules.json nor config.json. "
                "Name the folder into which a sentence-transformers model was saved, or one that `traceweir embedder` "
                "has made"
            )
    elif path.exists():
        raise EmbedderUnavailableError(f"embedder {name!r} is a file. Name the folder of the model")
    elif name.startswith(("/", "./", "../", "~")):
        raise EmbedderUnavailableError(f"embedder {name!r} does not exist. Name the folder of a model on this machine")


def _require_library(model: str) -> None:
    if importlib.util.find_spec("sentence_transformers") is None:
        shown = without_credentials(model)
        raise EmbedderUnavailableError(f"embedder {shown!r} needs sentence-transformers; install it with {INSTALL}")


class SentenceTransformerEmbedder:
    """A model of the sentence-transformers library, on the device that the library selects.

    The model truncates texts longer than its window (256 word pieces for all-MiniLM-L6-v2). On a CPU, PyTorch uses one
    thread for each small group of texts, and computes as many groups at the same time as it would have used threads for
    one (`OMP_NUM_THREADS` limits them). This holds for all of PyTorch in this process.

    Args:
        model: Name on the Hugging Face hub, or path of a folder.
        local_only: Whether to use local files only, without network access.

    Raises:
        EmbedderUnavailableError: the library is not installed, or the model does not load.
    """

    runs_inline = False

    def __init__(self, model: str, *, local_only: bool = False) -> None:
        shown = without_credentials(model)
        _require_library(model)
        try:
            from sentence_transformers import SentenceTransformer

            self._model: Any = SentenceTransformer(model, local_files_only=local_only)
        except Exception as error:  # noqa: BLE001  # the library, the file system and the network raise errors of many types
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            # The library's message can repeat the value, whole or in part.
            if shown != model:
                reason = type(error).__name__
            raise EmbedderUnavailableError(
                f"embedder {shown!r} could not be loaded: {reason} "
                "(use the path of the model's folder, or the model's name on a machine with network access; "
                f"{INSTALL} installs the library)"
            ) from (None if shown != model else error)
        self.id = f"{Path(shown).name}@{weights_digest(self._model)}"
        self.dimensions: int = len(self.encode_as_library([""])[0])
        self._groups = _groups_on_cpu(self._model)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Returns one row per text: in small groups on a CPU, in batches of the library's default size elsewhere."""
        if self._groups is None:
            return self.encode_as_library(texts)
        window = self._model.max_seq_length or WINDOW_TOKENS
        estimated = [min(window, len(text) // _CHARACTERS_OF_TOKEN + 2) for text in texts]
        return self._groups.embed(
            estimated, self.dimensions, lambda group: self.encode_as_library([texts[index] for index in group])
        )

    def encode_as_library(self, texts: Sequence[str]) -> Vectors:
        """Returns one row per text, in batches of the library's default size."""
        rows = self._model.encode(
            list(texts), normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
        )
        vectors: Vectors = rows.astype("float32", copy=False)
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


WINDOW_TOKENS = 512
"""Tokens that a model reads if it does not say how many."""
_CHARACTERS_OF_TOKEN = 4
"""Characters of a token, for an estimate."""
_URL = re.compile(r"(?s)([A-Za-z][A-Za-z0-9+.-]*://)(.*@)?(.*)")
"""A URL: scheme, user and password up to the last `@` (a password can contain `/` unescaped), and the rest."""


def _groups_on_cpu(model: Any) -> LengthGroups | None:
    """Returns what splits texts into groups; None if the model runs on a GPU, which is fastest with large batches."""
    if getattr(getattr(model, "device", None), "type", None) != "cpu":
        return None
    import torch

    from traceweir.streams.scoring.embedders.length_groups import LengthGroups

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    # The number also belongs to each thread.
    return LengthGroups(threads, lambda: torch.set_num_threads(1))


def weights_digest(model: Any) -> str:
    """Returns twelve hex digits of the weights: equal weights have equal digests in any folder and under any name."""
    # The digest ignores names and order, because releases of the library name and order the same tensors differently.
    tensors = [
        hashlib.sha256(tensor.detach().cpu().float().numpy().tobytes()) for tensor in model.state_dict().values()
    ]
    return hashlib.sha256(b"".join(sorted(tensor.digest() for tensor in tensors))).hexdigest()[:12]
