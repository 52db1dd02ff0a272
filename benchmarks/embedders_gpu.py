"""Measures a sentence-transformers model on a GPU: texts/s, CPU, memory, and what half precision changes.

    python -m benchmarks.embedders_gpu FILE MODEL [--rounds N] [--repeats N]

FILE is as for `benchmarks.recorded`; the texts are those of all traces and all messages, as the scoring process embeds
them. MODEL is the folder of a model, or its name. Single and half precision take turns in each round.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.embedders import print_agreement, texts_of
from benchmarks.machine import description
from traceweir.scorers.embedding import Vectors
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.scoring.embedders.embedding_batches import Batching
from traceweir.streams.scoring.embedders.loading import EmbedderUnavailableError, SentenceTransformerEmbedder

SIZES = (32, 64, 128, 256, 512, 1_024)
"""Texts in a batch of the model."""
CALLS = (64, 256, 1_024)
"""Texts in a call of the scoring process at most."""
MILLION = 1_000_000


class OnDevice:
    """A model on one device, in single or half precision."""

    runs_inline = False

    def __init__(self, model: str, device: str, *, half: bool) -> None:
        from sentence_transformers import SentenceTransformer

        self.model: Any = SentenceTransformer(model, device=device, local_files_only=True)
        if half:
            self.model.half()
        self.id = f"{device}, {'half' if half else 'single'} precision"
        self.dimensions: int = len(self.embed([""])[0])

    def embed(self, texts: Sequence[str], size: int = 256) -> Vectors:
        """Returns a row of length 1 for each text; the length is computed in single precision."""
        rows = self.model.encode(list(texts), batch_size=size, convert_to_numpy=True, show_progress_bar=False)
        vectors: Vectors = np.asarray(rows, np.float32)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors


def measure(path: Path, name: str, rounds: int, repeats: int) -> None:
    """Prints the tables."""
    import torch

    traces, messages, records = texts_of(path)
    texts = traces + messages
    embedders = [OnDevice(name, "cuda", half=half) for half in (False, True)]
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}: {len(texts)} texts, {repeats} times\n")
    _rates(embedders, texts * repeats, rounds)
    _parts(embedders[1], texts, rounds)
    _as_the_scoring_process(name, [f"{text} {n}" for n in range(repeats) for text in texts], rounds)
    reference = OnDevice(name, "cpu", half=False)
    print_agreement({each.id: each for each in (reference, *embedders)}, texts, records)


def _rates(embedders: Sequence[OnDevice], texts: Sequence[str], rounds: int) -> None:
    import torch

    print(
        "| texts in a batch | single precision: texts/s | half: texts/s | half: s for 1,000,000 texts"
        " | half: CPU ms a text | half: memory of the GPU, MiB |\n|---|---|---|---|---|---|"
    )
    for size in SIZES:
        wall: list[list[float]] = [[], []]
        cpu: list[float] = []
        peak = 0
        for number in range(rounds + 1):  # the first warms up
            for which, embedder in enumerate(embedders):
                torch.cuda.reset_peak_memory_stats()
                began, used = perf_counter(), process_time()
                embedder.embed(texts, size)
                if number:
                    wall[which].append((perf_counter() - began) / len(texts))
                    if which:
                        cpu.append((process_time() - used) / len(texts))
                        peak = torch.cuda.max_memory_allocated() >> 20
        single, half = (statistics.median(each) for each in wall)
        print(
            f"| {size:,} | {1 / single:,.0f} | {1 / half:,.0f} | {half * MILLION:,.0f} | {statistics.median(cpu) * 1e3:.3g} | {peak:,} |"
        )


def _parts(embedder: OnDevice, texts: Sequence[str], rounds: int) -> None:
    """Prints what the tokenizer alone and the model alone could do, with texts of similar length in a batch."""
    import torch

    print("\n| texts in a batch | tokenizer alone: texts/s | model alone: texts/s |\n|---|---|---|")
    ordered = sorted(texts, key=len, reverse=True)
    for size in SIZES:
        pieces = [ordered[at : at + size] for at in range(0, len(ordered), size)]
        tokens = [
            {key: value.cuda() for key, value in embedder.model.tokenize(piece).items() if torch.is_tensor(value)}
            for piece in pieces
        ]

        def tokenize(pieces: list[list[str]] = pieces) -> None:
            for piece in pieces:
                embedder.model.tokenize(piece)

        def run(tokens: list[dict[str, Any]] = tokens) -> None:
            with torch.inference_mode():
                for each in tokens:
                    embedder.model(dict(each))
            torch.cuda.synchronize()

        rates = [len(texts) / _median_s(part, rounds) for part in (tokenize, run)]
        print(f"| {size:,} | {rates[0]:,.0f} | {rates[1]:,.0f} |")


def _as_the_scoring_process(name: str, texts: Sequence[str], rounds: int) -> None:
    """Prints the rate of the scoring process's own embedder, with 2,048 texts that wait."""
    print("\n| texts in a call of the scoring process | texts/s | CPU ms a text |\n|---|---|---|")
    embedder = SentenceTransformerEmbedder(name)
    for size in CALLS:

        async def embed(size: int = size) -> None:
            batching, left = Batching(embedder, size), iter(texts)

            async def wait() -> None:
                for text in left:
                    await batching.embed(text)

            await asyncio.gather(*(wait() for _ in range(2_048)))
            await batching.close()

        used = process_time()
        wall = _median_s(lambda embed=embed: asyncio.run(embed()), rounds)  # type: ignore[misc]
        print(
            f"| {size:,} | {len(texts) / wall:,.0f} | {(process_time() - used) / len(texts) / (rounds + 1) * 1e3:.3g} |"
        )


def _require_gpu() -> None:
    import torch

    if not torch.cuda.is_available():
        raise EmbedderUnavailableError(
            "PyTorch finds no CUDA device; run this on a machine with a GPU and a CUDA build of PyTorch"
        )


def _median_s(work: Callable[[], object], rounds: int) -> float:
    """Returns the median of the seconds; a first run warms up."""
    found = []
    for number in range(rounds + 1):
        began = perf_counter()
        work()
        if number:
            found.append(perf_counter() - began)
    return statistics.median(found)


def main(arguments: Sequence[str]) -> None:
    """Prints the tables; exit code 2 if the file or the model cannot be used, or PyTorch finds no GPU."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.embedders_gpu", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("file", type=Path, help="recorded sessions")
    parser.add_argument("model", help="folder or name of a sentence-transformers model")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the timing (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=8, help="how often each text is timed (default: %(default)s)")
    given = parser.parse_args(arguments)
    print(description())
    try:
        _require_gpu()
        measure(given.file, given.model, given.rounds, given.repeats)
    except (InputError, EmbedderUnavailableError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
