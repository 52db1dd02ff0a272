"""Defines why a request is refused, with the codes that HTTP and gRPC have for the reason."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """Why a request is refused. Clients send a request again only if the reason is temporary."""

    BAD_DATA = ("bad_data", 400, 3, None)
    # Over gRPC only: an empty body over HTTP is empty data.
    NO_MESSAGE = ("no_message", 400, 3, None)
    UNAUTHENTICATED = ("unauthenticated", 401, 16, None)
    NOT_FOUND = ("not_found", 404, 12, None)
    METHOD_NOT_ALLOWED = ("method_not_allowed", 405, 12, None)
    # OTLP clients give a 408 up, and repeat a 503.
    TOO_SLOW = ("too_slow", 503, 4, 1)
    TOO_LARGE = ("too_large", 413, 8, None)
    UNSUPPORTED_TYPE = ("unsupported_type", 415, 3, None)
    OVERLOADED = ("overloaded", 429, 14, 1)
    UNAVAILABLE = ("unavailable", 503, 14, 2)
    INTERNAL = ("internal", 500, 13, None)

    def __init__(self, label: str, http_status: int, grpc_code: int, retry_after_s: int | None) -> None:
        self.label = label
        """The name of the reason in the log."""
        self.http_status = http_status
        """The status of the answer over HTTP."""
        self.grpc_code = grpc_code
        """The code of `google.rpc.Status`, in the body over HTTP and of the answer over gRPC."""
        self.retry_after_s = retry_after_s
        """Seconds after which the client can send the request again; None: the same request is refused again."""


class Refusal(Exception):  # noqa: N818 # an outcome that the caller handles
    """A request is refused, and nothing of it is acknowledged; the message says why, and the way out."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
