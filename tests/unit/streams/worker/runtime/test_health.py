"""Tests the web port of the worker: /healthz, /readyz, and the error when the port is in use."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from traceweir.streams.worker.runtime.health import Health, PortTakenError, bind


class Served:
    """A page server, and the problems and the state that it reports."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.obstacles: list[str] = []
        self.state: dict[str, object] = {"phase": "ready", "partitions": [0, 2]}
        self._socket = bind("127.0.0.1", 0)
        self.health = Health(
            self._socket, lambda: self.problems, lambda: self.state, lambda: b"up 1\n", obstacles=lambda: self.obstacles
        )
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    async def get(self, path: str, method: str = "GET") -> tuple[int, Any]:
        async with aiohttp.ClientSession() as session, session.request(method, self.url + path) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if answer.content_type == "application/json" and text else None


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    served = Served()
    await served.health.start()
    yield served
    await served.health.stop()


async def test_the_worker_is_healthy_while_there_are_no_problems(served: Served) -> None:
    assert await served.get("/healthz") == (200, {"healthy": True, "problems": []})
    served.problems.append("partition 3: fetching traces has made no progress for more than 120 s")
    assert await served.get("/healthz") == (503, {"healthy": False, "problems": served.problems})


@pytest.mark.parametrize("phase", ["starting", "joining", "catching up", "stopping"])
async def test_the_worker_is_ready_only_in_the_phase_ready_and_healthy_in_every_phase(
    served: Served, phase: str
) -> None:
    assert await served.get("/readyz") == (200, {"ready": True, "phase": "ready", "partitions": [0, 2]})
    served.state |= {"phase": phase}
    assert await served.get("/readyz") == (503, {"ready": False, "phase": phase, "partitions": [0, 2]})
    assert (await served.get("/healthz"))[0] == 200


async def test_a_worker_with_a_problem_is_not_ready_and_says_why(served: Served) -> None:
    served.problems.append("no Kafka broker has answered for more than 15 s: check that the brokers run")
    status, state = await served.get("/readyz")
    assert status == 503
    assert state == {"ready": False, "phase": "ready", "partitions": [0, 2], "problems": served.problems}


async def test_an_obstacle_makes_a_healthy_process_not_ready_and_is_named(served: Served) -> None:
    served.obstacles.append("the target answered 503")
    assert await served.get("/healthz") == (200, {"healthy": True, "problems": []})
    status, state = await served.get("/readyz")
    assert (status, state["ready"], state["problems"]) == (503, False, served.obstacles)
    assert not served.health.ready


async def test_the_metrics_are_the_text_of_prometheus(served: Served) -> None:
    async with aiohttp.ClientSession() as session, session.get(served.url + "/metrics") as answer:
        assert await answer.text() == "up 1\n"
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"


@pytest.mark.parametrize("path", ["/", "/table/", "/router/", "/metrics/x", "/healthz/x"])
async def test_other_paths_are_not_found(served: Served, path: str) -> None:
    assert (await served.get(path))[0] == 404


async def test_the_pages_accept_head_and_reject_post(served: Served) -> None:
    assert (await served.get("/healthz", "HEAD"))[0] == 200
    assert (await served.get("/healthz", "POST"))[0] == 405


def test_a_port_in_use_is_reported_with_the_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortTakenError, match=rf"web port {port} on 127\.0\.0\.1 .*set TRACEWEIR_WEB_PORT"):
            bind("127.0.0.1", port)


def test_a_port_that_an_option_names_is_reported_with_this_option() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        pytest.raises(PortTakenError, match=r"cannot be bound .*: set --port to another port, or to 0") as raised,
    ):
        bind("127.0.0.1", other.getsockname()[1], named="--port")
    assert "TRACEWEIR_WEB_PORT" not in str(raised.value)


def test_an_address_of_another_machine_is_reported() -> None:
    # RFC 5737 reserves this address for documentation, so no machine has it.
    with pytest.raises(PortTakenError, match=r"on 192\.0\.2\.1 cannot be bound"):
        bind("192.0.2.1", 6066)


def test_a_host_name_that_cannot_be_encoded_is_reported() -> None:
    with pytest.raises(PortTakenError, match=r"cannot be bound \(.*TRACEWEIR_WEB_HOST is the address"):
        bind("x" * 64, 6066)
