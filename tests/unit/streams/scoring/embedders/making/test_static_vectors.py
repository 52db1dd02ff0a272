"""Tests the vectors of a static model."""

import numpy as np

from traceweir.streams.scoring.embedders.making.distill import static_vectors


def test_components_keep_the_likeness_of_tokens() -> None:
    rows = np.random.default_rng(7).normal(size=(40, 6)).astype(np.float32)
    centred = rows - rows.mean(axis=0)
    found = static_vectors(rows, [], dimensions=6)
    lengths = np.linalg.norm(found, axis=1) / np.linalg.norm(centred, axis=1)
    unit = found / lengths[:, None]
    np.testing.assert_allclose(unit @ unit.T, centred @ centred.T, atol=1e-4)


def test_a_frequent_token_weighs_less_than_a_rare_one() -> None:
    rows = np.random.default_rng(7).normal(size=(200, 6)).astype(np.float32)
    centred = np.linalg.norm(rows - rows.mean(axis=0), axis=1)
    weights = np.linalg.norm(static_vectors(rows, []), axis=1) / centred
    assert np.all(np.diff(weights) > 0)


def test_ignored_tokens_have_no_vector_and_no_place_in_the_order() -> None:
    rows = np.random.default_rng(7).normal(size=(20, 6)).astype(np.float32)
    found = static_vectors(rows, [0, 7])
    assert not found[[0, 7]].any()
    others = [each for each in range(20) if each not in {0, 7}]
    np.testing.assert_allclose(found[others], static_vectors(rows[others], []), atol=1e-6)


def test_at_most_the_wanted_components_are_kept() -> None:
    rows = np.random.default_rng(7).normal(size=(20, 6)).astype(np.float32)
    assert static_vectors(rows, [], dimensions=4).shape == (20, 4)
    assert static_vectors(rows, [], dimensions=9).shape == (20, 6)
