"""Serves OTLP/gRPC. Needs grpcio, which is the extra `[grpc]`; import this module only if grpcio is installed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from traceweir.streams.tools.endpoint.bodies import too_large
from traceweir.streams.tools.endpoint.receiver import Receiver
from traceweir.streams.tools.endpoint.refusals import Reason, Refusal
from traceweir.streams.tools.endpoint.signals import SIGNALS, SignalNames, response_of

_CODES = {code.value[0]: code for code in grpc.StatusCode}
RPCS_PER_REQUEST = 4
"""Calls that may be open for each request that may be in work."""
CANCELLED_WITHIN_S = 0.2
"""Seconds in which gRPC itself cancels a call whose message it has refused."""
_MAX_MESSAGE_CHARACTERS = 1_000
"""Characters of the message of a refusal, which stands in a header; clients limit these to 8 kB."""


def grpc_server(receiver: Receiver, read_timeout_s: float) -> Any:
    """Returns the server; the caller adds its port and starts it.

    Args:
        receiver: Does the work of each request.
        read_timeout_s: Seconds in which a client must have sent a message.
    """
    server = grpc.aio.server(
        # More requests than can be in work are refused by their admission; this bounds the calls that wait for one.
        maximum_concurrent_rpcs=RPCS_PER_REQUEST * receiver.in_flight.max_requests,
        options=[
            # Also after decompression.
            ("grpc.max_receive_message_length", receiver.max_request_bytes),
            ("grpc.max_concurrent_streams", 100),
            # Otherwise a second process takes half of the connections.
            ("grpc.so_reuseport", 0),
        ],
    )
    server.add_generic_rpc_handlers(
        [
            grpc.method_handlers_generic_handler(
                names.service,
                {"Export": grpc.stream_unary_rpc_method_handler(_export(receiver, names, read_timeout_s))},
            )
            for names in SIGNALS
        ]
    )
    return server


def _authorization(metadata: Any) -> str | None:
    found = dict(metadata).get("authorization")
    return found if isinstance(found, str) else None


def _export(receiver: Receiver, names: SignalNames, read_timeout_s: float) -> Callable[[Any, Any], Awaitable[bytes]]:
    # As a stream, of which one message is read, a call is admitted or refused before its message takes memory.
    async def export(messages: Any, context: Any) -> bytes:
        try:
            admission = receiver.begin(_authorization(context.invocation_metadata()))
            try:
                request = await _message(context, receiver.max_request_bytes, read_timeout_s)
                admission.hold_bytes(len(request))
                found = await receiver.receive(admission, names.signal, request, json=False)
            finally:
                admission.release()
        except Refusal as error:
            refusal = error
        except Exception as error:  # noqa: BLE001  # a fault of the endpoint, answered as OTLP defines it
            refusal = receiver.failed(error)
        else:
            return bytes(response_of(names, found.rejected, found.problem).SerializeToString())
        receiver.refused(refusal)
        try:
            await context.abort(_CODES[refusal.reason.grpc_code], str(refusal)[:_MAX_MESSAGE_CHARACTERS])
        except grpc.aio.InternalError:
            # The call is over: gRPC itself has refused a message above its limit, or the client has gone.
            raise asyncio.CancelledError from None
        raise AssertionError("abort raises")

    return export


async def _message(context: Any, max_bytes: int, timeout_s: float) -> bytes:
    try:
        async with asyncio.timeout(timeout_s):
            message = await context.read()
    except TimeoutError:
        raise Refusal(
            Reason.TOO_SLOW,
            f"the message did not arrive within {timeout_s:g} s (TRACEWEIR_OTLP_READ_TIMEOUT_S)",
        ) from None
    if message is grpc.aio.EOF:
        # gRPC gives no message that is above its own limit to read, and then cancels the call at once.
        try:
            await asyncio.sleep(CANCELLED_WITHIN_S)
        except asyncio.CancelledError:
            raise too_large(max_bytes) from None
        raise Refusal(Reason.NO_MESSAGE, "the call has ended without a message; send one request in each call")
    if len(message) > max_bytes:
        raise too_large(max_bytes)
    return bytes(message)
