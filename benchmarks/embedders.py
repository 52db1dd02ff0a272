"""Compares embedders on the texts of recorded sessions: CPU a text, nearest neighbours, novelty, values and decisions.

    python -m benchmarks.embedders FILE EMBEDDER... [--texts N] [--timed N] [--rounds N]

EMBEDDER is as in `TRACEWEIR_EMBEDDER`; the first is the one with which the others are compared. FILE is as for
`benchmarks.recorded`. The texts are those of all traces, of 20 triples (a text, its paraphrase and another text), and of
all messages, each once; `--texts` and `--timed` draw some, with a seed.
The embedders take turns in each round, and the CPU is that of all threads. `benchmarks.embedders_gpu` measures a model
on a GPU.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np
from tests.support.paraphrases import TRIPLES

from benchmarks.labelled import read_labelled
from benchmarks.machine import description
from traceweir.schemas.text import printable
from traceweir.schemas.trace import ReasoningTrace
from traceweir.scorers.embedding import Embedder, Vectors, embedded_text
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import load_settings
from traceweir.streams.intake.formats.base import DocumentRecords
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.scoring.embedders.loading import (
    EmbedderUnavailableError,
    SentenceTransformerEmbedder,
    load_embedder,
)
from traceweir.streams.scoring.embedders.onnx_embedder import thread_count
from traceweir.streams.tools.offline.score_documents import score_offline

CALL = 64
"""Texts in a call, as the scoring process has them at most."""


class Decisions(NamedTuple):
    """What an embedder changes in the scores, by trace."""

    novelty: dict[str, float]
    value: dict[str, float]
    gate: dict[str, str]


def texts_of(path: Path) -> tuple[list[str], list[str], list[DocumentRecords]]:
    """Returns the texts of the traces, those of the messages, each once, and the records of the sessions."""
    sessions, records = read_labelled(path)
    traces, messages = dict[str, None](), dict[str, None]()
    for each in sessions:
        for trace in each.session.traces:
            traces[_text(trace)] = None
            messages |= dict.fromkeys(step.content for step in trace.steps if step.content)
    return [*traces], [text for text in messages if text not in traces], records


def compare(path: Path, names: Sequence[str], count: int, timed_texts: int, rounds: int) -> None:
    """Prints a row for each embedder."""
    traces, messages, records = texts_of(path)
    triples = [text for triple in TRIPLES.values() for text in triple]
    always = traces + triples
    chosen = always + random.Random(1).sample(messages, max(0, min(count - len(always), len(messages))))
    loaded = {name: _loaded(name) for name in names}
    runs: dict[str, Callable[[Sequence[str]], Vectors]] = {name: each.embed for name, each in loaded.items()}
    first = loaded[names[0]]
    if isinstance(first, SentenceTransformerEmbedder):
        runs = {f"{names[0]}, as the library computes it": partial(_as_library, first)} | runs
    drawn = len(chosen) - len(always)
    print(f"{len(traces)} texts of traces, {len(triples)} of triples, {drawn} of {len(messages)} messages")
    timed = random.Random(2).sample(chosen, min(len(chosen), timed_texts))
    cpu: dict[str, list[float]] = {name: [] for name in runs}
    wall: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, embed in runs.items():
            began, used = perf_counter(), process_time()
            for at in range(0, len(timed), CALL):
                embed(timed[at : at + CALL])
            cpu[name].append((process_time() - used) / len(timed))
            wall[name].append((perf_counter() - began) / len(timed))
    base = cpu[next(iter(runs))]
    print("\n| embedder | CPU ms a text | texts/s | times less CPU |\n|---|---|---|---|")
    for name in runs:
        ratio = statistics.median(one / other for one, other in zip(base, cpu[name], strict=True))
        print(
            f"| {printable(name, 80)} | {statistics.median(cpu[name]) * 1e3:.3g} | {1 / statistics.median(wall[name]):.3g} | {ratio:.3g} |"
        )
    print_agreement(loaded, chosen, records)


def _as_library(embedder: SentenceTransformerEmbedder, texts: Sequence[str]) -> Vectors:
    """Embeds in batches of 32 texts, each on all cores, as PyTorch and sentence-transformers do without settings."""
    import torch

    torch.set_num_threads(thread_count())
    try:
        return embedder.encode_as_library(texts)
    finally:
        torch.set_num_threads(1)


def print_agreement(loaded: Mapping[str, Embedder], texts: Sequence[str], records: Sequence[DocumentRecords]) -> None:
    """Prints how vectors, nearest neighbours, novelty, values and decisions differ from those of the first embedder."""
    print(
        "\n| embedder | largest difference of a value | same nearest neighbour | paraphrase nearer than another text"
        " | novelty: correlation, mean difference | value: mean difference | same gate decision |\n|---|---|---|---|---|---|---|"
    )
    first: tuple[Vectors, Decisions] | None = None
    for name, embedder in loaded.items():
        vectors = np.concatenate([embedder.embed(texts[at : at + CALL]) for at in range(0, len(texts), CALL)])
        decisions = _decisions(records, embedder)
        if first is None:
            first = vectors, decisions
        reference, expected = first
        same_kind = vectors.shape == reference.shape
        difference = f"{np.abs(vectors - reference).max():.2g}" if same_kind else "another length"
        neighbours = np.mean(_nearest(vectors) == _nearest(reference))
        ids = sorted(expected.novelty.keys() & decisions.novelty.keys())
        one = np.array([expected.novelty[each] for each in ids])
        other = np.array([decisions.novelty[each] for each in ids])
        values = statistics.fmean(abs(expected.value[each] - decisions.value[each]) for each in expected.value)
        gates = statistics.fmean(expected.gate[each] == decisions.gate[each] for each in expected.gate)
        print(
            f"| {printable(name, 80)} | {difference} | {neighbours:.1%} "
            f"| {_nearer(embedder)} of {len(TRIPLES)} | {np.corrcoef(one, other)[0, 1]:.3f}, "
            f"{np.abs(one - other).mean():.3f} | {values:.4f} | {gates:.1%} |"
        )


def _decisions(records: Sequence[DocumentRecords], embedder: Embedder) -> Decisions:
    found = asyncio.run(
        score_offline(records, read_plan({}), embedder, load_settings(), clock=utc_now, progress=lambda done, of: None)
    )
    decisions = Decisions({}, {}, {})
    for score in found.scores:
        if score.metric == "trace_value" and score.value is not None:
            decisions.value[score.session_id] = score.value
            novelty = score.details.get("novelty")
            if isinstance(novelty, int | float):
                decisions.novelty[score.session_id] = novelty
        elif score.metric == "gate":
            decisions.gate[score.session_id] = score.status
    return decisions


def _nearest(vectors: Vectors) -> np.ndarray:
    likeness = vectors @ vectors.T
    np.fill_diagonal(likeness, -2)
    nearest: np.ndarray = likeness.argmax(axis=1)
    return nearest


def _nearer(embedder: Embedder) -> int:
    """Returns how many texts of triples are nearer to their paraphrase than to the other text."""
    triples = (embedder.embed(triple) for triple in TRIPLES.values())
    return sum(bool(text @ paraphrase > text @ other) for text, paraphrase, other in triples)


def _text(trace: ReasoningTrace) -> str:
    return embedded_text(trace.task.objective, [step.content for step in trace.steps])


def _loaded(name: str) -> Embedder:
    found = load_embedder(name)
    if found is None:
        raise EmbedderUnavailableError(f"embedder {name!r} computes no vectors; name another one")
    return found


def main(arguments: Sequence[str]) -> None:
    """Prints the tables; exit code 2 if the file or an embedder cannot be used."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.embedders", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("file", type=Path, help="recorded sessions")
    parser.add_argument(
        "embedders", nargs="+", metavar="EMBEDDER", help="as in TRACEWEIR_EMBEDDER; the first is the reference"
    )
    parser.add_argument("--texts", type=int, default=2_000, help="texts that are compared (default: %(default)s)")
    parser.add_argument("--timed", type=int, default=256, help="of these, texts that are timed (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the timing (default: %(default)s)")
    given = parser.parse_args(arguments)
    print(description())
    try:
        compare(given.file, given.embedders, given.texts, given.timed, given.rounds)
    except (InputError, EmbedderUnavailableError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
