"""`traceweir up` checks its ports before anything starts, and takes free ones in place of defaults that are taken."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from traceweir.streams.base.errors import NotReadyError
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.up.ports import replaced_ports
from traceweir.streams.worker.runtime.health import listening_socket

PORTS = ("dashboard_port", "otlp_http_port", "otlp_grpc_port", "web_port")


@pytest.fixture
def taken() -> Iterator[int]:
    """Yields a port of another program."""
    with listening_socket("127.0.0.1", 0) as other:
        yield other.getsockname()[1]


def free_ports(count: int) -> list[int]:
    """Returns free ports below those that systems give to programs that ask for any, so that no other test gets one."""
    found: list[int] = []
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with suppress(OSError), socket.socket() as other:
            other.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            break
    return found


def settings(**ports: int) -> Settings:
    return Settings(**(dict.fromkeys(PORTS, 0) | ports))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PORTS)
def test_a_default_that_is_taken_is_replaced_and_said(
    name: str, taken: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replaced_ports(settings(**{name: taken}), ()) == {f"TRACEWEIR_{name.upper()}": "0"}
    assert f"Port {taken} is taken" in capsys.readouterr().err


@pytest.mark.parametrize("name", PORTS)
def test_a_chosen_port_that_is_taken_is_refused(name: str, taken: int) -> None:
    with pytest.raises(NotReadyError, match=f"TRACEWEIR_{name.upper()}={taken}: the port is taken; set the variable"):
        replaced_ports(settings(**{name: taken}), {name})


def test_a_default_that_another_part_has_by_choice_is_replaced() -> None:
    (free,) = free_ports(1)

    assert replaced_ports(settings(dashboard_port=free, otlp_http_port=free), {"otlp_http_port"}) == {
        "TRACEWEIR_DASHBOARD_PORT": "0"
    }


def test_ports_that_are_free_stay_and_are_free_afterwards() -> None:
    free = settings(**dict(zip(PORTS, free_ports(len(PORTS)), strict=True)))

    assert [replaced_ports(free, PORTS), replaced_ports(free, ())] == [{}, {}]


def test_a_port_of_grpc_does_not_count_without_grpc(taken: int) -> None:
    without = settings(otlp_grpc_port=taken).model_copy(update={"otlp_grpc": "off"})

    assert replaced_ports(without, {"otlp_grpc_port"}) == {}


def test_only_the_ports_of_a_part_count_for_it(taken: int) -> None:
    (free,) = free_ports(1)
    found = settings(dashboard_port=taken, otlp_http_port=taken, otlp_grpc_port=free)

    assert replaced_ports(found, (), "otlp") == {"TRACEWEIR_OTLP_HTTP_PORT": "0"}
    assert replaced_ports(found, {"dashboard_port"}, "worker") == {}
