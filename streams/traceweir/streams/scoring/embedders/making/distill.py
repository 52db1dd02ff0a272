"""Distils a static model: one vector for each token of a sentence-transformers model, so that no model runs for a text.

The method is that of Model2Vec (https://github.com/MinishLab/model2vec): the model embeds each token of its
vocabulary alone; principal components keep what distinguishes the tokens; and a token weighs less the more frequent it
is (Arora et al., 2017, https://openreview.net/forum?id=SyK00v5xx). Frequencies are estimated by Zipf's law, because a
vocabulary is sorted by them.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traceweir.scorers.embedding import Vectors
from traceweir.streams.scoring.embedders.making.new_folder import new_folder, refuse_used
from traceweir.streams.scoring.embedders.making.source import ModelSource, load_source
from traceweir.streams.scoring.embedders.model_folder import About, write_about
from traceweir.streams.scoring.embedders.onnx_embedder import TOKENIZER
from traceweir.streams.scoring.embedders.static_embedder import VECTORS, StaticEmbedder

MAX_DIMENSIONS = 256
"""Most principal components that are kept."""
_SMOOTHING = 1e-4
"""Arora's `a`: a token with this probability has half of the weight of a rare one."""
_AT_ONCE = 512


@dataclass(frozen=True)
class Distilled:
    """What was made."""

    id: str
    """Id of the new embedder."""
    made_from: str
    """Id of the original."""
    tokens: int
    """Tokens with a vector."""
    dimensions: int
    """Length of a vector."""
    megabytes: float
    """Size of the folder."""


def distill(model: str, out: Path) -> Distilled:
    """Writes a folder with a static model, and says what it is.

    Raises:
        ModelMakingError: the model cannot be read, or the folder cannot be written.
    """
    refuse_used(out)
    source = load_source(model, ("tokenizers",))
    tokenizer = source.tokenizer
    with new_folder(out) as folder:
        vectors = static_vectors(_token_vectors(source, tokenizer.get_vocab_size()), _special(source))
        about = About("static", source.name, source.id, vectors.shape[1])
        np.save(folder / VECTORS, vectors)
        # Its own `save` hides the cause of a failure.
        (folder / TOKENIZER).write_text(tokenizer.to_str(), "utf-8")
        write_about(folder, about)
        made = StaticEmbedder(folder, about)
        size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    return Distilled(made.id, source.id, len(vectors), made.dimensions, size)


def static_vectors(tokens: Vectors, ignored: list[int], dimensions: int = MAX_DIMENSIONS) -> Vectors:
    """Returns the weighted principal components of the vectors of tokens.

    Args:
        tokens: A row for each token, the more frequent first.
        ignored: Tokens that get a row of zeros, such as the mark of an unknown word.
        dimensions: Components that are kept, if the rows are that long.
    """
    kept = np.setdiff1d(np.arange(len(tokens)), ignored)
    centred = tokens[kept].astype(np.float64)
    centred -= centred.mean(axis=0)
    values, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, np.argsort(-values)[:dimensions]]
    # The sign is free.
    axes *= np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)
    rank = np.arange(1, len(kept) + 1)
    probability = 1 / rank / (1 / rank).sum()
    result = np.zeros((len(tokens), axes.shape[1]), np.float32)
    result[kept] = (centred @ axes) * (_SMOOTHING / (_SMOOTHING + probability))[:, None]
    return result


def _token_vectors(source: ModelSource, tokens: int) -> Vectors:
    """Returns what the model computes for each token between its marks of begin and end."""
    import torch

    before, after = _marks(source)

    def embed(first: int) -> Vectors:
        given = torch.tensor([[*before, token, *after] for token in range(first, min(first + _AT_ONCE, tokens))])
        with torch.inference_mode():
            found = source.model({"input_ids": given, "attention_mask": torch.ones_like(given)})["sentence_embedding"]
        rows: Vectors = found.float().numpy()
        return rows

    # One thread of PyTorch for each group of tokens: threads that share a group wait for each other.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with ThreadPoolExecutor(threads, initializer=lambda: torch.set_num_threads(1)) as pool:
        vectors: Vectors = np.nan_to_num(np.concatenate([*pool.map(embed, range(0, tokens, _AT_ONCE))]))
    return vectors


def _marks(source: ModelSource) -> tuple[list[int], list[int]]:
    """Returns the ids that the tokenizer puts before and after a text."""
    found = source.tokenizer.encode("a", add_special_tokens=True)
    plain = [index for index, special in enumerate(found.special_tokens_mask) if not special]
    return list(found.ids[: plain[0]]), list(found.ids[plain[-1] + 1 :])


def _special(source: ModelSource) -> list[int]:
    return [int(each) for each in source.model.tokenizer.all_special_ids]
