"""One version stands in the package, the changelog, the images and the manifests."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from tests.support.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
VERSION: str = PROJECT["version"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")
RELEASED = re.findall(r"^## \[(\d[^]]*)\] - \d{4}-\d\d-\d\d$", CHANGELOG, re.MULTILINE)
"""The versions of the changelog, the newest first."""
INSTALL = ROOT / "docs" / "install.md"
IMAGES = [ROOT / "docker-compose.yml", *sorted(ROOT.glob("k8s/**/*.yaml")), ROOT / "k8s" / "README.md", INSTALL]


def test_the_newest_release_of_the_changelog_is_the_version() -> None:
    assert RELEASED[:1] in ([], [VERSION])


def test_before_the_first_release_changelog_and_readme_say_so() -> None:
    states = [
        "\n## [Unreleased]\n\nNothing has been released yet." in CHANGELOG,
        "\n**Status: alpha, never released.**" in (ROOT / "README.md").read_text("utf-8"),
    ]
    assert states == [not RELEASED] * 2


@pytest.mark.parametrize("file", IMAGES, ids=lambda file: str(file.relative_to(ROOT)))
def test_an_image_of_ours_has_the_version(file: Path) -> None:
    assert set(re.findall(r"\btraceweir:(\d[\w.]*)", file.read_text("utf-8"))) <= {VERSION}


def test_there_are_images_to_look_at() -> None:
    assert any(f"traceweir:{VERSION}" in file.read_text("utf-8") for file in IMAGES)


def test_the_page_about_installation_names_the_wheel_and_every_extra() -> None:
    page = INSTALL.read_text("utf-8")
    assert set(re.findall(r"traceweir-(.+?)-py3-none-any\.whl", page)) == {VERSION}
    rows = re.findall(r"^\| (`.+?) \|", page, re.MULTILINE)
    named = {extra for row in rows for extra in re.findall(r"`([a-z-]+)`", row)}
    assert named == set(PROJECT["optional-dependencies"]) - {"dev", "docs"}


def test_the_client_has_the_version_of_the_workers() -> None:
    client = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text("utf-8"))
    assert client["project"]["version"] == VERSION
