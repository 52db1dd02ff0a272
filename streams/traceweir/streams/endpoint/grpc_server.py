"""Serves OTLP/gRPC. Needs grpcio, which is the extra `[grpc]`; import this module only if grpcio is installed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from traceweir.streams.endpoint.bodies import too_large
from traceweir.streams.endpoint.receiver import Receiver
from traceweir.streams.endpoint.refusals import Refusal
from traceweir.streams.endpoint.signals import SIGNALS, SignalNames, response_of

_CODES = {code.value[0]: code for code in grpc.StatusCode}
RPCS_PER_REQUEST = 4
"""Calls that may be open for each request that may be in work."""
_MAX_MESSAGE_CHARACTERS = 1_000
"""Characters of the message of a refusal, which stands in a header; clients limit these to 8 kB."""


def grpc_server(receiver: Receiver) -> Any:
    """Returns the server; the caller adds its port and starts it."""
    server = grpc.aio.server(
        interceptors=[_TokenFirst(receiver)],
        # More requests than can be in work are refused by their admission; this bounds the bodies that wait for one.
        maximum_concurrent_rpcs=RPCS_PER_REQUEST * receiver.in_flight.max_requests,
        options=[
            ("grpc.max_receive_message_length", receiver.max_request_bytes),  # also after decompression
            ("grpc.max_concurrent_streams", 100),
            ("grpc.so_reuseport", 0),  # otherwise a second process takes half of the connections
        ],
    )
    server.add_generic_rpc_handlers(
        [
            grpc.method_handlers_generic_handler(
                names.service, {"Export": grpc.unary_unary_rpc_method_handler(_export(receiver, names))}
            )
            for names in SIGNALS
        ]
    )
    return server


class _TokenFirst(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # grpcio is untyped
    """Refuses a call by its metadata, before its message is received."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        try:
            self._receiver.check_token(_authorization(details.invocation_metadata))
        except Refusal as refusal:
            self._receiver.counts["requests"] += 1
            return grpc.stream_unary_rpc_method_handler(_refuse(self._receiver, refusal))
        return await continuation(details)


def _refuse(receiver: Receiver, refusal: Refusal) -> Callable[[Any, Any], Awaitable[bytes]]:
    async def refuse(messages: Any, context: Any) -> bytes:
        receiver.refused(refusal)
        await context.abort(_CODES[refusal.reason.grpc_code], str(refusal)[:_MAX_MESSAGE_CHARACTERS])
        raise AssertionError("abort raises")

    return refuse


def _authorization(metadata: Any) -> str | None:
    found = dict(metadata).get("authorization")
    return found if isinstance(found, str) else None


def _export(receiver: Receiver, names: SignalNames) -> Callable[[bytes, Any], Awaitable[bytes]]:
    async def export(request: bytes, context: Any) -> bytes:
        try:
            admission = receiver.begin(_authorization(context.invocation_metadata()))
            try:
                if len(request) > receiver.max_request_bytes:
                    raise too_large(receiver.max_request_bytes)
                admission.hold_bytes(len(request))
                found = await receiver.receive(admission, names.signal, request, json=False)
            finally:
                admission.release()
        except Refusal as refusal:
            return await _refuse(receiver, refusal)(None, context)
        except Exception as error:  # noqa: BLE001  # a fault of the endpoint, answered as OTLP defines it
            return await _refuse(receiver, receiver.failed(error))(None, context)
        return bytes(response_of(names, found.rejected, found.problem).SerializeToString())

    return export
