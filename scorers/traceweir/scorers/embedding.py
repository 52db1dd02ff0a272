"""Defines the embedder protocol, and the text of a trace that is embedded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

# Only a process that has an embedder needs numpy, whose import takes a tenth of the CPU of a small command.
if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Vectors: TypeAlias = "npt.NDArray[np.float32]"
"""float32 array of shape (texts, dimensions), or (dimensions,) for a single text."""


class Embedder(Protocol):
    """Turns texts into vectors whose cosine measures the similarity of the texts."""

    @property
    def id(self) -> str:
        """Name and version; must change if the vectors change, because vectors of different ids are never compared."""

    @property
    def dimensions(self) -> int:
        """Length of every vector."""

    @property
    def runs_inline(self) -> bool:
        """Whether `embed` takes far less than a millisecond per text; an event loop then calls it without a thread."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Returns a row of Euclidean length 1 per text; a text without anything to embed has a row of zeros.

        The row of a text must not depend on the other texts.
        """


def embedded_text(objective: str, step_contents: Sequence[str | None]) -> str:
    """Returns the text to embed for a trace: its objective and the content of its steps, joined as in KnowledgePulse.

    A step without content counts as an empty string, which results in two consecutive spaces or a space at the end.
    The text does not contain tools, inputs, summaries and the outcome.

    >>> embedded_text("Refund the order.", ["Look it up.", None, "Done."])
    'Refund the order. Look it up.  Done.'
    """
    return objective + " " + " ".join(content or "" for content in step_contents)
