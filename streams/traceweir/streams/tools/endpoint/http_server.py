"""Serves OTLP/HTTP: `/v1/traces` and `/v1/logs` in protobuf and JSON, and `/healthz`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import orjson
from aiohttp import web
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.json_format import MessageToDict

from traceweir.streams.tools.endpoint.bodies import read_body, too_large
from traceweir.streams.tools.endpoint.receiver import Receiver
from traceweir.streams.tools.endpoint.refusals import Reason, Refusal
from traceweir.streams.tools.endpoint.signals import SIGNALS, SignalNames, response_of

HEALTH = "/healthz"
PROTOBUF = "application/x-protobuf"
JSON = "application/json"
IDLE_TIMEOUT_S = 75.0
"""Seconds without a request, or without the end of a request's headers, after which a connection is closed."""
LINGER_S = 0.5
"""Seconds for which the rest of a refused body is read and dropped, so that its client can read the answer."""
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def http_runner(receiver: Receiver, read_timeout_s: float, stop_within_s: float) -> web.AppRunner:
    """Returns the runner of the server; the caller adds its sites.

    Args:
        receiver: Does the work of each request.
        read_timeout_s: Seconds in which a client must have sent a body.
        stop_within_s: Seconds that the requests in work have to end when the server stops.
    """
    application = web.Application(middlewares=[_refusing(receiver)])
    for names in SIGNALS:
        application.router.add_post(names.path, _export(receiver, names, read_timeout_s))
    application.router.add_post("/v1/metrics", _metrics)
    application.router.add_get(HEALTH, _health(receiver))
    return web.AppRunner(
        application,
        access_log=None,
        handle_signals=False,
        keepalive_timeout=IDLE_TIMEOUT_S,
        lingering_time=LINGER_S,
        shutdown_timeout=stop_within_s,
        # `read_body` decompresses, and stops at the limit.
        auto_decompress=False,
    )


def _export(receiver: Receiver, names: SignalNames, read_timeout_s: float) -> _Handler:
    async def handle(request: web.Request) -> web.Response:
        admission = receiver.begin(request.headers.get("Authorization"))
        try:
            content_type = _content_type(request)
            gzip = _is_gzip(request)
            if (request.content_length or 0) > receiver.max_request_bytes:
                raise too_large(receiver.max_request_bytes)
            try:
                async with asyncio.timeout(read_timeout_s):
                    body = await read_body(
                        _chunks(request),
                        gzip=gzip,
                        max_bytes=receiver.max_request_bytes,
                        hold=admission.hold_bytes,
                    )
            except TimeoutError:
                raise Refusal(
                    Reason.TOO_SLOW,
                    f"the body did not arrive within {read_timeout_s:g} s (TRACEWEIR_OTLP_READ_TIMEOUT_S)",
                ) from None
            found = await receiver.receive(admission, names.signal, body, json=content_type == JSON)
        finally:
            admission.release()
        return _encoded(response_of(names, found.rejected, found.problem), content_type, 200)

    return handle


async def _chunks(request: web.Request) -> AsyncIterator[bytes]:
    try:
        async for chunk in request.content.iter_any():
            yield chunk
    except web.RequestPayloadError as error:
        raise Refusal(Reason.BAD_DATA, f"the body is not complete ({error})") from None


def _content_type(request: web.Request) -> str:
    if request.content_type not in (PROTOBUF, JSON):
        given = request.headers.get("Content-Type", "")
        raise Refusal(Reason.UNSUPPORTED_TYPE, f"the content type is {given[:80]!r}; it must be {PROTOBUF} or {JSON}")
    return request.content_type


def _is_gzip(request: web.Request) -> bool:
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("gzip", "identity", ""):
        raise Refusal(Reason.UNSUPPORTED_TYPE, f"the content encoding is {encoding[:80]!r}; it must be gzip or absent")
    return encoding == "gzip"


async def _metrics(request: web.Request) -> web.Response:
    raise Refusal(Reason.NOT_FOUND, "Traceweir receives spans and logs, no metrics; set OTEL_METRICS_EXPORTER=none")


def _health(receiver: Receiver) -> _Handler:
    async def handle(request: web.Request) -> web.Response:
        problem = receiver.problem
        found = {"healthy": problem is None, "in_flight": receiver.in_flight.requests}
        return web.Response(
            body=orjson.dumps(found if problem is None else {**found, "problem": problem}),
            status=200 if problem is None else 503,
            content_type=JSON,
            headers={"Cache-Control": "no-store"},
        )

    return handle


def _refusing(receiver: Receiver) -> Any:
    @web.middleware
    async def middleware(request: web.Request, handler: _Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except Refusal as refusal:
            found = refusal
        except web.HTTPNotFound:
            paths = " and ".join(names.path for names in SIGNALS)
            found = Refusal(Reason.NOT_FOUND, f"this path does not exist; OTLP/HTTP has {paths}")
        except web.HTTPMethodNotAllowed as error:
            allowed = ", ".join(sorted(error.allowed_methods))
            found = Refusal(Reason.METHOD_NOT_ALLOWED, f"this path takes {allowed} requests only")
            return _refused(receiver, request, found, {"Allow": allowed})
        except Exception as error:  # noqa: BLE001  # a fault of the endpoint, answered as OTLP defines it
            found = receiver.failed(error)
        return _refused(receiver, request, found)

    return middleware


def _refused(
    receiver: Receiver, request: web.Request, refusal: Refusal, more_headers: Mapping[str, str] | None = None
) -> web.Response:
    receiver.refused(refusal)
    reason = refusal.reason
    headers = dict(more_headers or {})
    if reason.retry_after_s is not None:
        headers["Retry-After"] = str(reason.retry_after_s)
    if reason is Reason.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = "Bearer"
    if reason is Reason.UNSUPPORTED_TYPE:
        headers["Accept-Encoding"] = "gzip"
    content_type = request.content_type if request.content_type in (PROTOBUF, JSON) else JSON
    response = _encoded(Status(code=reason.grpc_code, message=str(refusal)), content_type, reason.http_status, headers)
    if not request.content.is_eof():
        # The rest of the body is not wanted.
        response.force_close()
    return response


def _encoded(message: Any, content_type: str, status: int, headers: Mapping[str, str] | None = None) -> web.Response:
    body = message.SerializeToString() if content_type == PROTOBUF else orjson.dumps(MessageToDict(message))
    return web.Response(body=body, status=status, content_type=content_type, headers=headers)


def _status_class() -> Any:
    """Returns the class of `google.rpc.Status`; its package would bring several hundred others for two fields."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="traceweir/status.proto", package="traceweir.rpc", syntax="proto3")
    status = file.message_type.add(name="Status")
    for name, number, kind in (("code", 1, field.TYPE_INT32), ("message", 2, field.TYPE_STRING)):
        status.field.add(name=name, number=number, type=kind, label=field.LABEL_OPTIONAL)
    return message_factory.GetMessages([file], descriptor_pool.DescriptorPool())["traceweir.rpc.Status"]


Status: Any = _status_class()
"""What OTLP/HTTP answers to a request that is refused: a code of gRPC and a message."""
