"""Tests which embedder a setting loads, and how concurrent coroutines share an embedder in batches."""

import asyncio
import logging
import sys
import threading
from collections.abc import Coroutine, Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Self, TypeVar

import numpy as np
import pytest

from traceweir.scorers.embedding import HashingEmbedder
from traceweir.streams.scoring.embedders import (
    Batching,
    EmbedderUnavailableError,
    SentenceTransformerEmbedder,
    load_embedder,
)

T = TypeVar("T")


class GatedEmbedder:
    """Embeds a text as its length; every batch waits until the test releases the gate."""

    id, dimensions, runs_inline = "gated@1", 1, False

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.threads: set[str] = set()
        self.started = threading.Semaphore(0)
        self.gate = threading.Semaphore(0)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.batches.append(list(texts))
        self.threads.add(threading.current_thread().name)
        self.started.release()
        self.gate.acquire()
        if "broken" in texts:
            raise RuntimeError("out of memory")
        if "short" in texts:
            return np.zeros((0, 1), np.float32)
        return np.array([[len(text)] for text in texts], np.float32)

    async def has_started(self) -> None:
        await asyncio.to_thread(self.started.acquire)


class InlineEmbedder(GatedEmbedder):
    runs_inline = True


@pytest.fixture
def gated() -> Iterator[GatedEmbedder]:
    embedder = GatedEmbedder()
    yield embedder
    embedder.gate.release(1000)


async def submitted(*coroutines: Coroutine[Any, Any, T]) -> list[asyncio.Task[T]]:
    """Returns tasks that have all run until their first wait."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    await asyncio.sleep(0)
    return tasks


async def test_texts_submitted_while_a_batch_runs_become_the_next_batch(gated: GatedEmbedder) -> None:
    batching = Batching(gated)
    first = await submitted(batching.embed("a"))
    await gated.has_started()
    others = await submitted(batching.embed("bb"), batching.embed("ccc"), batching.embed("dddd"))
    gated.gate.release(2)
    assert [float(vector[0]) for vector in await asyncio.gather(*first, *others)] == [1, 2, 3, 4]
    assert gated.batches == [["a"], ["bb", "ccc", "dddd"]]
    await batching.close()


async def test_simultaneous_callers_share_batches_up_to_the_maximum_size(
    gated: GatedEmbedder,
) -> None:
    batching = Batching(gated, max_batch=2)
    gated.gate.release(3)
    await asyncio.gather(*(batching.embed(text) for text in "abcde"))
    assert gated.batches == [["a", "b"], ["c", "d"], ["e"]]
    await batching.close()


async def test_batches_run_in_a_single_thread_outside_the_event_loop(gated: GatedEmbedder) -> None:
    batching = Batching(gated, max_batch=1)
    gated.gate.release(3)
    await asyncio.gather(*(batching.embed(text) for text in "abc"))
    assert gated.threads == {"embedder_0"}
    await batching.close()


async def test_an_exception_reaches_the_callers_of_its_batch_and_no_other_caller(gated: GatedEmbedder) -> None:
    batching = Batching(gated, max_batch=2)
    gated.gate.release(2)
    results = await asyncio.gather(*map(batching.embed, ["a", "broken", "c", "d"]), return_exceptions=True)
    outcomes = [str(each) if isinstance(each, BaseException) else float(each[0]) for each in results]
    assert outcomes == ["out of memory", "out of memory", 1, 1]
    await batching.close()


async def test_each_batch_is_told_with_its_size_and_its_time(gated: GatedEmbedder) -> None:
    told: list[tuple[int, float]] = []
    batching = Batching(gated, embedded=lambda texts, seconds: told.append((texts, seconds)))
    gated.gate.release(3)
    await asyncio.gather(*map(batching.embed, ["a", "b", "c"]))
    await asyncio.gather(batching.embed("broken"), return_exceptions=True)
    await batching.close()
    assert [texts for texts, _ in told] == [3, 1]
    assert all(seconds > 0 for _, seconds in told)


async def test_an_embedder_that_returns_too_few_vectors_is_an_error(gated: GatedEmbedder) -> None:
    batching = Batching(gated)
    gated.gate.release(1)
    with pytest.raises(ValueError, match=r"gated@1 returned an array of shape \(0, 1\) for 1 texts"):
        await batching.embed("short")
    await batching.close()


async def test_the_text_of_a_cancelled_caller_is_not_embedded(gated: GatedEmbedder) -> None:
    batching = Batching(gated)
    running = await submitted(batching.embed("running"))
    await gated.has_started()
    gone, stays = await submitted(batching.embed("gone"), batching.embed("stays"))
    gone.cancel()
    running[0].cancel()
    gated.gate.release(2)
    assert float((await stays)[0]) == 5
    assert gated.batches == [["running"], ["stays"]]
    await batching.close()


async def test_a_new_batch_starts_after_the_queue_was_empty(gated: GatedEmbedder) -> None:
    batching = Batching(gated)
    gated.gate.release(2)
    await batching.embed("a")
    await batching.embed("b")
    assert gated.batches == [["a"], ["b"]]
    await batching.close()


async def test_closing_cancels_waiting_callers_and_finishes_the_running_batch(gated: GatedEmbedder) -> None:
    batching = Batching(gated)
    (running,) = await submitted(batching.embed("running"))
    await gated.has_started()
    (waiting,) = await submitted(batching.embed("waiting"))
    (closing,) = await submitted(batching.close())
    gated.gate.release(1)
    await closing
    assert float((await running)[0]) == 7
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_an_inline_embedder_runs_without_a_thread() -> None:
    embedder = InlineEmbedder()
    embedder.gate.release(1)
    batching = Batching(embedder)
    await batching.embed("a")
    assert embedder.threads == {threading.current_thread().name}
    await batching.close()


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


def test_the_id_of_a_model_depends_on_its_weights_and_not_on_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def id_of(path: str, weights: Sequence[float]) -> str:
        install(monkeypatch, FakeLibrary(weights))
        embedder = load_embedder(path)
        assert embedder is not None
        return embedder.id

    assert id_of("/home/kim/models/bge-m3", [1.0]) == id_of("BAAI/bge-m3", [1.0])
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
