"""Posts bodies to one URL. Redirects are not followed, and of an answer only its beginning is read."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import NamedTuple

import aiohttp

from traceweir.schemas.text import printable
from traceweir.streams.base.http_answers import beginning
from traceweir.streams.base.known_secrets import KnownSecrets, secrets_of_url
from traceweir.streams.tools.export.answers import Later

SHOWN_CHARACTERS = 300


class HttpReply(NamedTuple):
    """An answer over HTTP."""

    status: int
    headers: Mapping[str, str]
    """The headers; their names in any case."""
    body: bytes
    """The first 64 kB of the body."""


class HttpPost:
    """Posts to one URL within an `async with` block.

    Args:
        url: The whole address. It can contain a secret, so that only its host is shown.
        secrets: What else is sent and must not be shown, such as keys in headers.
        timeout_s: Seconds that a request has, from its connection to the end of the answer.
        tls: Which certificates are trusted, and the own one; None: the authorities of the system.
        connections: Number of connections at the same time.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float,
        secrets: Iterable[str] = (),
        tls: ssl.SSLContext | None = None,
        connections: int = 1,
    ) -> None:
        own = [*secrets_of_url(url), *secrets]
        self._secrets = KnownSecrets(own, fragments=own)
        self._url = url
        self._timeout_s = timeout_s
        self._tls = tls
        self._connections = connections

    async def __aenter__(self) -> HttpPost:
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=self._timeout_s),
            connector=aiohttp.TCPConnector(limit=self._connections, ssl=self._tls if self._tls is not None else True),
            # An answer that is asked for plain and arrives compressed is read as it is.
            auto_decompress=False,
            # Proxies, as in every client of OTLP.
            trust_env=True,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    def shown(self, text: str) -> str:
        """Returns what a target says, safe to print: without what it repeats of the address and the secrets."""
        return printable(self._secrets.hide_in_beginning(text.strip()), SHOWN_CHARACTERS)

    async def post(self, body: bytes, headers: Mapping[str, str]) -> HttpReply | Later:
        """Returns the answer; `Later` if there is none."""
        try:
            async with self._session.post(
                self._url, data=body, headers={"Accept-Encoding": "identity", **headers}, allow_redirects=False
            ) as response:
                return HttpReply(response.status, response.headers, await beginning(response.content))
        except TimeoutError:
            return Later(f"the target has not answered within {self._timeout_s:g} s")
        except aiohttp.InvalidURL:
            return Later("the target's address is not valid")
        except (aiohttp.ClientError, OSError) as error:
            return Later(f"the target cannot be reached ({self.shown(str(error) or repr(error))})")
