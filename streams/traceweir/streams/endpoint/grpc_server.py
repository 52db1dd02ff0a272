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
_MAX_MESSAGE_CHARACTERS = 1_000
"""Characters of the message of a refusal, which stands in a header; clients limit these to 8 kB."""


def grpc_server(receiver: Receiver) -> Any:
    """Returns the server; the caller adds its port and starts it."""
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", receiver.max_request_bytes),  # also after decompression
            ("grpc.max_concurrent_streams", 100),
            ("grpc.so_reuseport", 0),  # otherwise a second process takes half of the connections
        ]
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


def _export(receiver: Receiver, names: SignalNames) -> Callable[[bytes, Any], Awaitable[bytes]]:
    async def export(request: bytes, context: Any) -> bytes:
        authorization = dict(context.invocation_metadata()).get("authorization")
        try:
            admission = receiver.begin(authorization if isinstance(authorization, str) else None)
            try:
                if len(request) > receiver.max_request_bytes:
                    raise too_large(receiver.max_request_bytes)
                admission.hold_bytes(len(request))
                found = await receiver.receive(admission, names.signal, request, json=False)
            finally:
                admission.release()
        except Refusal as refusal:
            receiver.refused(refusal)
            await context.abort(_CODES[refusal.reason.grpc_code], str(refusal)[:_MAX_MESSAGE_CHARACTERS])
        return bytes(response_of(names, found.rejected, found.problem).SerializeToString())

    return export
