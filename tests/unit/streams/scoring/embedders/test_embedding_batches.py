"""Tests how concurrent coroutines share an embedder in batches, and that equal texts are embedded once."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import pytest

from traceweir.streams.scoring.embedders.embedding_batches import Batching
from traceweir.streams.scoring.embedders.vector_cache import VectorCache

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


async def test_equal_texts_of_one_batch_are_embedded_once(gated: GatedEmbedder) -> None:
    reused: list[int] = []
    batching = Batching(gated, reused=reused.append)
    gated.gate.release(1)
    vectors = await asyncio.gather(*map(batching.embed, ["same", "other!", "same", "same"]))
    assert [float(vector[0]) for vector in vectors] == [4, 6, 4, 4]
    assert gated.batches == [["same", "other!"]]
    assert sum(reused) == 2
    await batching.close()


async def test_a_text_that_is_being_embedded_is_not_embedded_again(gated: GatedEmbedder) -> None:
    batching = Batching(gated)
    first = await submitted(batching.embed("same"))
    await gated.has_started()
    again = await submitted(batching.embed("same"))
    gated.gate.release(2)
    assert [float(vector[0]) for vector in await asyncio.gather(*first, *again)] == [4, 4]
    assert gated.batches == [["same"]]
    await batching.close()


async def test_a_text_that_comes_again_later_is_not_embedded_again(gated: GatedEmbedder) -> None:
    reused: list[int] = []
    batching = Batching(gated, reused=reused.append)
    gated.gate.release(2)
    first, again = await batching.embed("same"), await batching.embed("same")
    assert np.array_equal(first, again)
    assert (gated.batches, reused) == ([["same"]], [1])
    await batching.close()


async def test_a_text_that_failed_is_embedded_again(gated: GatedEmbedder) -> None:
    batching = Batching(gated)
    gated.gate.release(2)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="out of memory"):
            await batching.embed("broken")
    assert gated.batches == [["broken"], ["broken"]]
    await batching.close()


async def test_one_cancelled_caller_does_not_cancel_the_text_of_another(gated: GatedEmbedder) -> None:
    batching = Batching(gated)
    running = await submitted(batching.embed("running"))
    await gated.has_started()
    gone, stays = await submitted(batching.embed("same"), batching.embed("same"))
    gone.cancel()
    gated.gate.release(2)
    assert float((await stays)[0]) == 4
    await asyncio.gather(*running)
    assert gated.batches == [["running"], ["same"]]
    await batching.close()


async def test_a_text_whose_callers_were_all_cancelled_is_embedded_when_it_comes_again(gated: GatedEmbedder) -> None:
    batching = Batching(gated)
    running = await submitted(batching.embed("running"))
    await gated.has_started()
    (gone,) = await submitted(batching.embed("same"))
    gone.cancel()
    gated.gate.release(2)
    await asyncio.gather(*running)
    assert float((await batching.embed("same"))[0]) == 4
    await batching.close()


def test_the_cache_drops_the_vector_that_was_used_least_recently() -> None:
    vector = np.ones(384, np.float32)
    cache = VectorCache(max_bytes=2 * (vector.nbytes + 400))
    cache.put(b"a", vector)
    cache.put(b"b", vector)
    cache.get(b"a")
    cache.put(b"c", vector)
    assert [cache.get(key) is not None for key in (b"a", b"b", b"c")] == [True, False, True]


def test_a_vector_that_is_put_again_counts_once() -> None:
    vector = np.ones(384, np.float32)
    cache = VectorCache(max_bytes=2 * (vector.nbytes + 400))
    cache.put(b"a", vector)
    for _ in range(5):
        cache.put(b"b", vector)
    assert cache.get(b"a") is not None


def test_a_vector_beyond_the_limit_is_not_kept() -> None:
    cache = VectorCache(max_bytes=1_000)
    cache.put(b"a", np.ones(384, np.float32))
    assert cache.get(b"a") is None


def test_a_kept_vector_does_not_change_with_the_array_of_its_batch() -> None:
    batch = np.ones((2, 4), np.float32)
    cache = VectorCache()
    cache.put(b"a", batch[0])
    batch[0] = 7
    kept = cache.get(b"a")
    assert kept is not None
    assert kept.tolist() == [1, 1, 1, 1]
    assert not kept.flags.writeable


async def test_texts_with_a_lone_surrogate_have_vectors(gated: GatedEmbedder) -> None:
    batching = Batching(gated)
    gated.gate.release(1)
    assert float((await batching.embed("\ud800!"))[0]) == 2
    await batching.close()
