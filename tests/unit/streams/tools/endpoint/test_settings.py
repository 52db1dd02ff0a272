"""Tests where the endpoint refuses to listen, and that a token is never told."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from tests.support.endpoint import endpoint

from traceweir.streams.base.errors import InvalidSettingsError
from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.endpoint.errors import EndpointError
from traceweir.streams.tools.endpoint.server import check_settings


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "collector.example.org"])
def test_an_address_on_a_network_needs_a_token(host: str) -> None:
    with pytest.raises(InvalidSettingsError, match="TRACEWEIR_OTLP_TOKEN"):
        check_settings(Settings(otlp_host=host))
    check_settings(Settings(otlp_host=host, otlp_token="0123456789abcdef"))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_an_address_of_this_machine_needs_no_token(host: str) -> None:
    check_settings(Settings(otlp_host=host))


@pytest.mark.parametrize(
    "token", ["", "short", "with a space in the middle", "0123456789abcdefé", "0123456789abcdef\n"]
)
def test_a_weak_or_unusable_token_is_refused_and_not_told(token: str) -> None:
    with pytest.raises(ValidationError, match="openssl rand") as refused:
        Settings(otlp_token=token)
    assert not token or token not in str(refused.value)


def test_a_token_is_not_in_the_text_of_the_settings() -> None:
    assert "0123456789abcdef" not in repr(Settings(otlp_token="0123456789abcdef"))


def test_a_request_must_fit_into_what_all_requests_can_hold() -> None:
    with pytest.raises(ValidationError, match="would never fit"):
        Settings(otlp_max_request_bytes=2_000, otlp_max_in_flight_bytes=1_000)


async def test_a_taken_port_is_named_with_its_variable() -> None:
    async with endpoint() as served:
        port = int(served.addresses.http.rpartition(":")[2])
        with pytest.raises(EndpointError, match="TRACEWEIR_OTLP_HTTP_PORT"):
            async with endpoint(otlp_http_port=port):
                pass


async def test_a_taken_grpc_port_is_named_with_its_variable_and_the_other_port_is_free_again() -> None:
    async with endpoint(otlp_grpc="on") as served:
        assert served.addresses.grpc is not None
        taken = int(served.addresses.grpc.rpartition(":")[2])
        with pytest.raises(EndpointError, match="TRACEWEIR_OTLP_GRPC_PORT"):
            async with endpoint(otlp_grpc="on", otlp_grpc_port=taken):
                pass
