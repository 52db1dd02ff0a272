"""Loads the sentence-transformers model from which an embedder is made, from this machine only."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traceweir.streams.scoring.embedders.loading import (
    EmbedderUnavailableError,
    refuse_wrong_path,
    weights_digest,
    without_credentials,
)
from traceweir.streams.scoring.embedders.making.errors import ModelMakingError

INSTALL = "pip install '.[embeddings-make]' in a clone of Traceweir"


@dataclass(frozen=True)
class ModelSource:
    """A loaded model."""

    model: Any
    """The `SentenceTransformer`, on the CPU."""
    name: str
    """Its name, without its folder."""
    id: str
    """The id of the embedder that Traceweir makes of it."""

    @property
    def tokenizer(self) -> Any:
        """A copy of the model's tokenizer, of the package tokenizers, without padding and truncation.

        Raises:
            ModelMakingError: the model's tokenizer is not one of this package.
        """
        found = getattr(self.model.tokenizer, "backend_tokenizer", None)
        if found is None:
            raise ModelMakingError(
                f"{self.name}: its tokenizer ({type(self.model.tokenizer).__name__}) is not of the package tokenizers, "
                "which alone runs without PyTorch. Use the model as it is"
            )
        copy = type(found).from_str(found.to_str())
        # Stored files can pad each text to a fixed length.
        copy.no_padding()
        copy.no_truncation()
        return copy

    @property
    def prompt(self) -> str:
        """The text that the model puts before each text; mostly empty."""
        return str((self.model.prompts or {}).get(self.model.default_prompt_name) or "")


def load_source(model: str, packages: Sequence[str]) -> ModelSource:
    """Returns the model with this path or name; nothing is downloaded.

    Args:
        model: Path of a folder, or the name of a model that this machine has.
        packages: Modules that are needed beside sentence-transformers.

    Raises:
        ModelMakingError: a package is missing, or the model is not on this machine or cannot be used.
    """
    if missing := [name for name in ("sentence_transformers", *packages) if importlib.util.find_spec(name) is None]:
        raise ModelMakingError(f"{', '.join(missing)} is not installed; install it with {INSTALL}")
    try:
        refuse_wrong_path(model)
    except EmbedderUnavailableError as error:
        raise ModelMakingError(str(error).removeprefix("embedder ")) from None
    shown = without_credentials(model)
    from sentence_transformers import SentenceTransformer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    try:
        # Attention in plain operations, which ONNX Runtime's optimizer recognises.
        loaded = SentenceTransformer(
            model, device="cpu", local_files_only=True, model_kwargs={"attn_implementation": "eager"}
        )
    except Exception as error:  # noqa: BLE001  # the library and the file system raise errors of many types
        reason = (
            type(error).__name__ if shown != model else (str(error).strip() or type(error).__name__).splitlines()[0]
        )
        raise ModelMakingError(
            f"{shown!r} could not be loaded: {reason} (use the path of the model's folder; nothing is downloaded)"
        ) from (None if shown != model else error)
    for parameter in loaded.parameters():
        parameter.requires_grad_(False)
    name = Path(shown).name
    return ModelSource(loaded.eval(), name, f"{name}@{weights_digest(loaded)}")
