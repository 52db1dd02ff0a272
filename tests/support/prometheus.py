"""Runs Prometheus on a free port of this machine, and asks it."""

from __future__ import annotations

import json
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[str]:
    """Runs Prometheus within the block, which reads one target each second; yields its address."""
    scrape = {"job_name": "traceweir", "scrape_interval": "1s", "static_configs": [{"targets": [target]}]}
    config, address = folder / "prometheus.yaml", f"127.0.0.1:{_free_port()}"
    config.write_text(yaml.safe_dump({"scrape_configs": [scrape]}))
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
    with (folder / "prometheus.log").open("wb") as log:
        running = subprocess.Popen([*command, f"--web.listen-address={address}"], stdout=log, stderr=log)
        try:
            yield f"http://{address}"
        finally:
            running.terminate()
            running.wait(30)


def answer(address: str, expression: str) -> list[Any]:
    """Returns the result of a query; nothing while Prometheus starts."""
    query = urllib.parse.urlencode({"query": expression})
    try:
        with urllib.request.urlopen(f"{address}/api/v1/query?{query}", timeout=90) as response:
            found: list[Any] = json.loads(response.read())["data"]["result"]
    except urllib.error.HTTPError as error:
        if error.code == 503:
            return []
        raise AssertionError(f"{expression}: {error.read().decode()}") from error
    except OSError:
        return []
    return found


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
