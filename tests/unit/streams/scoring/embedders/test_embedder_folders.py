"""Tests the folders that `traceweir embedder` makes: a static model, and folders that cannot be used."""

import re
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from tests.support.fake_openvino import fake_openvino

from traceweir.scorers.embedding import Embedder
from traceweir.streams.scoring.embedders.loading import EmbedderUnavailableError, load_embedder
from traceweir.streams.scoring.embedders.model_folder import ABOUT, About, write_about
from traceweir.streams.scoring.embedders.onnx_embedder import OnnxEmbedder
from traceweir.streams.scoring.embedders.static_embedder import MAX_CHARACTERS, StaticEmbedder

WORDS = {"[UNK]": 0, "cancel": 1, "my": 2, "flight": 3}
VECTORS = np.array([[0, 0], [3, 0], [0, 0.5], [0, 4]], np.float32)


def static_folder(folder: Path, vectors: np.ndarray = VECTORS, **about: Any) -> Path:
    tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
    folder.mkdir(exist_ok=True)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    np.save(folder / "vectors.npy", vectors)
    write_about(folder, About(**{"kind": "static", "name": "mini", "made_from": "mini@1", "dimensions": 2, **about}))
    return folder


def loaded(folder: Path) -> Embedder:
    embedder = load_embedder(str(folder))
    assert embedder is not None
    return embedder


def test_a_static_text_is_the_sum_of_its_tokens_with_length_one(tmp_path: Path) -> None:
    embedder = loaded(static_folder(tmp_path / "m"))
    expected = np.array([[0.6, 0.8], [0, 1]])
    np.testing.assert_allclose(embedder.embed(["cancel flight", "flight"]), expected, atol=1e-6)
    assert embedder.dimensions == 2
    assert isinstance(embedder, StaticEmbedder)


def test_a_static_text_without_a_known_token_is_zero(tmp_path: Path) -> None:
    embedder = loaded(static_folder(tmp_path / "m"))
    assert embedder.embed(["", "unknown", "\ud800"]).tolist() == [[0, 0]] * 3
    assert embedder.embed([]).shape == (0, 2)


def test_a_static_text_is_read_up_to_its_limit(tmp_path: Path) -> None:
    embedder = loaded(static_folder(tmp_path / "m"))
    (row,) = embedder.embed(["cancel" + " " * MAX_CHARACTERS + "flight"])
    assert row.tolist() == [1, 0]


def test_the_id_depends_on_the_files_and_not_on_the_folder(tmp_path: Path) -> None:
    one, copy = loaded(static_folder(tmp_path / "a")), loaded(static_folder(tmp_path / "b"))
    other = loaded(static_folder(tmp_path / "c", VECTORS * 2))
    assert one.id == copy.id
    assert one.id != other.id
    assert re.fullmatch(r"mini-static@[0-9a-f]{12}", one.id)


def test_vectors_that_do_not_fit_are_an_error_with_the_way_out(tmp_path: Path) -> None:
    folder = static_folder(tmp_path / "m", VECTORS[:2])
    with pytest.raises(EmbedderUnavailableError, match=r"shape \(2, 2\), and not .* \(4, 2\) \(make the folder again"):
        load_embedder(str(folder))


def test_pickled_vectors_are_never_read(tmp_path: Path) -> None:
    folder = static_folder(tmp_path / "m")
    np.save(folder / "vectors.npy", np.array([object()], object), allow_pickle=True)
    with pytest.raises(EmbedderUnavailableError, match="could not be loaded: Object arrays cannot be loaded"):
        load_embedder(str(folder))


@pytest.mark.parametrize(
    ("text", "reason"),
    [("{", "Input data was truncated"), ('{"kind":"new"}', "Invalid enum value"), ("[]", "Expected `object`")],
)
def test_a_broken_description_is_an_error_with_the_way_out(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / ABOUT).write_text(text)
    with pytest.raises(EmbedderUnavailableError, match=f"{reason}.*make the folder again with `traceweir embedder`"):
        load_embedder(str(tmp_path))


def test_a_folder_of_another_layout_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ABOUT).write_text('{"kind":"onnx","name":"a","made_from":"b","dimensions":2,"format":2}')
    with pytest.raises(EmbedderUnavailableError, match="Invalid enum value 2"):
        load_embedder(str(tmp_path))


@pytest.mark.parametrize(
    ("kind", "runtime", "extra"),
    [("onnx", "onnxruntime", "embeddings-onnx"), ("onnx-bfloat16", "openvino", "embeddings-openvino")],
)
def test_a_graph_without_its_runtime_names_the_extra(
    kind: Literal["onnx", "onnx-bfloat16"], runtime: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, runtime, None)
    write_about(tmp_path, About(kind, "mini", "mini@1", 2))
    with pytest.raises(EmbedderUnavailableError, match=rf"needs {runtime}; .*'\.\[{extra}\]'"):
        load_embedder(str(tmp_path))


@pytest.mark.parametrize("name", [None, "openvino"])
def test_a_graph_whose_runtime_is_broken_names_the_cause(
    name: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cause = f"raise ImportError('libopenvino.so: cannot open shared object file', name={name!r})"
    (tmp_path / "openvino.py").write_text(cause)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "openvino", raising=False)
    write_about(tmp_path, About("onnx-bfloat16", "mini", "mini@1", 2))
    with pytest.raises(EmbedderUnavailableError, match=r"cannot be imported: libopenvino.so.*install it again"):
        load_embedder(str(tmp_path))


def test_a_processor_without_bfloat16_computes_in_single_precision_and_the_log_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = static_folder(tmp_path / "m", kind="onnx-bfloat16")
    monkeypatch.setitem(sys.modules, "openvino", fake_openvino("FP32", "INT8"))
    embedder = loaded(folder)
    assert isinstance(embedder, OnnxEmbedder)
    assert embedder.precision == "float32"
    (said,) = caplog.messages
    assert said.startswith(f"embedder {embedder.id} was made for bfloat16")

    caplog.clear()
    monkeypatch.setitem(sys.modules, "openvino", fake_openvino("FP32", "BF16"))
    other = loaded(folder)
    assert isinstance(other, OnnxEmbedder)
    assert (other.precision, other.id, caplog.messages) == ("bfloat16", embedder.id, [])


def test_a_folder_without_a_model_is_named_and_nothing_is_downloaded(tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailableError, match="is a folder without a model: it has neither"):
        load_embedder(str(tmp_path))


def test_a_path_that_does_not_exist_is_named_and_nothing_is_downloaded(tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailableError, match=r"does not exist. Name the folder of a model"):
        load_embedder(str(tmp_path / "absent"))


def test_a_file_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"")
    with pytest.raises(EmbedderUnavailableError, match=r"is a file. Name the folder of the model"):
        load_embedder(str(tmp_path / "model.bin"))
