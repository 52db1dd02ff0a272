"""Schemathesis makes requests from the OpenAPI document, and each is answered as the document says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.dashboard_site import Site, served
from tests.support.scoring import NOW
from tests.support.stores import open_store

PROGRAM = Path(sys.prefix) / "schemathesis" / "bin" / "st"
CONFIG = Path(__file__).with_name("schemathesis.toml")
REQUESTS = 2_000
OF_EACH = 130
"""Requests of each operation in a phase."""


@pytest.mark.schemathesis
@pytest.mark.timeout(1_800)
@pytest.mark.skipif(not PROGRAM.exists(), reason="Schemathesis is not installed; `make test-schemathesis` installs it")
def test_every_generated_request_is_answered_as_the_document_says(tmp_path: Path) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW)
    site.add_sessions(60)
    with served(site) as address:
        found = subprocess.run(
            [
                *(PROGRAM, "--config-file", CONFIG, "run", f"{address}/api/v1/openapi.json", "-n", str(OF_EACH)),
                # It is a stream without an end.
                *("--exclude-path", "/api/v1/events"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )

    assert found.returncode == 0, found.stdout
    (generated,) = re.findall(r"(\d+) generated", found.stdout)
    assert int(generated) >= REQUESTS
