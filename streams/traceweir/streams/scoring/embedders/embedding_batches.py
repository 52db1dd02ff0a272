"""Shares an embedder between sessions: embeds many texts in one call, and equal texts once."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic

from traceweir.scorers.embedding import Embedder, Vectors
from traceweir.streams.scoring.embedders.vector_cache import VectorCache, digest_of


@dataclass(slots=True, eq=False)
class _Request:
    """A text that waits or is being embedded, with everyone who needs its vector."""

    digest: bytes
    text: str
    futures: list[asyncio.Future[Vectors]]

    @property
    def is_wanted(self) -> bool:
        """Whether a caller still waits: the others were cancelled."""
        return not all(future.done() for future in self.futures)


class Batching:
    """Shares an embedder between coroutines: the requests that arrive during a batch form the next batch.

    A request never waits for a batch to fill. Equal texts are embedded once: a text whose vector is in the cache, or
    which waits or is being embedded, is no new request. The embedder runs in a thread of its own, or inline if its
    `runs_inline` is true; inline there is no cache, because such an embedder costs little more than the digest.

    Args:
        embedder: The embedder; it is never called from two threads at the same time.
        max_batch: Maximum number of texts in one call.
        cache: Keeps the vectors of this embedder; None: a cache of its own.
        embedded: Called with the number of texts and the seconds of each call that is not inline.
        reused: Called with the number of texts that needed no embedding, because an equal text has or gets a vector.
    """

    def __init__(
        self,
        embedder: Embedder,
        max_batch: int = 64,
        cache: VectorCache | None = None,
        *,
        embedded: Callable[[int, float], object] = lambda texts, seconds: None,
        reused: Callable[[int], object] = lambda texts: None,
    ) -> None:
        self.embedder = embedder
        self._embedded = embedded
        self._reused = reused
        self._max_batch = max_batch
        self._cache = VectorCache() if cache is None else cache
        self._requests: dict[bytes, _Request] = {}
        self._waiting: deque[_Request] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedder")
        self._runner: asyncio.Task[None] | None = None

    async def embed(self, text: str) -> Vectors:
        """Returns the vector of a text; callers with equal texts can receive the same array, which is read-only.

        Raises:
            Exception: the error that the embedder raised for the batch of this text; other batches are unaffected.
        """
        if self.embedder.runs_inline:
            vector: Vectors = self._embed([text])[0]
            return vector
        digest = digest_of(text)
        if (known := self._cache.get(digest)) is not None:
            self._reused(1)
            return known
        future: asyncio.Future[Vectors] = asyncio.get_running_loop().create_future()
        if (same := self._requests.get(digest)) is not None:
            same.futures.append(future)
            self._reused(1)
        else:
            request = self._requests[digest] = _Request(digest, text, [future])
            self._waiting.append(request)
        if self._runner is None:
            self._runner = asyncio.create_task(self._run(), name="embedder")
        return await future

    async def close(self) -> None:
        """Cancels the waiting requests, and returns after the running batch has ended."""
        while self._waiting:
            request = self._waiting.popleft()
            del self._requests[request.digest]
            for future in request.futures:
                future.cancel()
        if self._runner is not None:
            await asyncio.wait([self._runner])
        self._thread.shutdown()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while batch := self._next_batch():
                began = monotonic()
                try:
                    vectors = await loop.run_in_executor(self._thread, self._embed, [each.text for each in batch])
                except Exception as error:  # noqa: BLE001  # every caller of the batch receives the error
                    for request in batch:
                        for future in self._taken(request):
                            future.set_exception(error)
                else:
                    for request, vector in zip(batch, vectors, strict=True):
                        kept = self._cache.put(request.digest, vector)
                        for future in self._taken(request):
                            future.set_result(kept)
                self._embedded(len(batch), monotonic() - began)
        finally:
            self._runner = None

    def _next_batch(self) -> list[_Request]:
        batch: list[_Request] = []
        while self._waiting and len(batch) < self._max_batch:
            request = self._waiting.popleft()
            if request.is_wanted:
                batch.append(request)
            else:
                del self._requests[request.digest]
        return batch

    def _taken(self, request: _Request) -> list[asyncio.Future[Vectors]]:
        """Ends a request; returns the futures of those who still wait."""
        del self._requests[request.digest]
        return [future for future in request.futures if not future.done()]

    def _embed(self, texts: list[str]) -> Vectors:
        vectors = self.embedder.embed(texts)
        if vectors.shape != (len(texts), self.embedder.dimensions):
            raise ValueError(
                f"embedder {self.embedder.id} returned an array of shape {vectors.shape} for {len(texts)} texts; "
                f"it must return one vector of {self.embedder.dimensions} values per text"
            )
        return vectors
