"""Tests which embedder a setting loads."""

import logging
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Self

import numpy as np
import pytest

from traceweir.scorers.hashing_embedder import HashingEmbedder
from traceweir.streams.scoring.embedders.loading import (
    EmbedderUnavailableError,
    SentenceTransformerEmbedder,
    load_embedder,
)


def test_the_embedders_none_and_hashing_need_no_library() -> None:
    assert load_embedder("none") is None
    assert isinstance(load_embedder("hashing"), HashingEmbedder)


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)


@pytest.mark.usefixtures("without_library")
def test_a_named_model_without_the_library_is_an_error_with_the_remedy() -> None:
    with pytest.raises(EmbedderUnavailableError, match=r"'BAAI/bge-m3' needs .*pip install '.\[embeddings\]'"):
        load_embedder("BAAI/bge-m3")


@pytest.mark.usefixtures("without_library")
def test_auto_without_the_library_is_no_embedder_and_logs_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "traceweir"):
        assert load_embedder("auto") is None
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert "novelty stays at 0.5" in caplog.text
    assert "pip install '.[embeddings]'" in caplog.text


class Tensor(np.ndarray):
    """Has the methods of a torch tensor that the product uses."""

    def detach(self) -> Self:
        return self

    cpu = float = numpy = detach


class FakeLibrary(ModuleType):
    """Replaces sentence_transformers: has one model with given weights, which is on disk or not."""

    def __init__(self, weights: Sequence[float] = (1.0, 2.0), on_disk: bool = True) -> None:
        super().__init__("sentence_transformers")
        self.__spec__ = ModuleSpec("sentence_transformers", None)
        self.loads: list[tuple[str, bool]] = []
        library = self

        class SentenceTransformer:
            def __init__(self, model: str, local_files_only: bool) -> None:
                library.loads.append((model, local_files_only))
                if local_files_only and not on_disk:
                    raise OSError("not among the cached files\nand a long explanation")

            def state_dict(self) -> dict[str, Tensor]:
                return {"weight": np.array(weights).view(Tensor)}

            def encode(
                self,
                texts: Sequence[str],
                *,
                normalize_embeddings: bool,
                convert_to_numpy: bool,
                show_progress_bar: bool,
            ) -> np.ndarray:
                assert (normalize_embeddings, convert_to_numpy, show_progress_bar) == (True, True, False)
                return np.ones((len(texts), 4)) / 2  # float64, so that the test sees the conversion to float32

        self.SentenceTransformer = SentenceTransformer


def install(monkeypatch: pytest.MonkeyPatch, library: FakeLibrary) -> FakeLibrary:
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    return library


def test_auto_loads_only_local_files(monkeypatch: pytest.MonkeyPatch) -> None:
    library = install(monkeypatch, FakeLibrary())
    assert isinstance(load_embedder("auto"), SentenceTransformerEmbedder)
    assert library.loads == [("sentence-transformers/all-MiniLM-L6-v2", True)]


def test_auto_without_the_model_on_disk_is_no_embedder_and_logs_the_reason(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(monkeypatch, FakeLibrary(on_disk=False))
    with caplog.at_level(logging.INFO, "traceweir"):
        assert load_embedder("auto") is None
    assert "could not be loaded: not among the cached files (" in caplog.text


def test_a_named_model_can_be_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    library = install(monkeypatch, FakeLibrary(on_disk=False))
    embedder = load_embedder("BAAI/bge-m3")
    assert embedder is not None
    assert library.loads == [("BAAI/bge-m3", False)]
    assert embedder.dimensions == 4
    assert embedder.embed(["a", "b"]).dtype == np.float32


def test_the_id_of_a_model_depends_on_its_weights_and_not_on_its_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bge-m3").mkdir()
    (tmp_path / "bge-m3" / "modules.json").write_text("[]")

    def id_of(path: str, weights: Sequence[float]) -> str:
        install(monkeypatch, FakeLibrary(weights))
        embedder = load_embedder(path)
        assert embedder is not None
        return embedder.id

    assert id_of(str(tmp_path / "bge-m3"), [1.0]) == id_of("BAAI/bge-m3", [1.0])
    assert id_of("BAAI/bge-m3", [1.0]) != id_of("BAAI/bge-m3", [2.0])
    assert id_of("BAAI/bge-m3", [1.0]).startswith("bge-m3@")


@pytest.mark.parametrize("is_installed", [True, False])
def test_credentials_in_the_address_of_a_model_are_not_shown(
    is_installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Library:
        def __init__(self, model: str, **options: object) -> None:
            raise OSError(f"cannot download {model}")

    library = ModuleType("sentence_transformers")
    library.SentenceTransformer = Library  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: library if is_installed else None)
    with pytest.raises(EmbedderUnavailableError) as caught:
        load_embedder("https://alice:hunter2@models.example/minilm?token=t0ken")
    shown = str(caught.value)
    assert "https://[hidden]@models.example/minilm?[hidden]" in shown
    assert not [secret for secret in ("alice", "hunter2", "t0ken") if secret in shown]
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
