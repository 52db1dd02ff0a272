"""Defines the paths of files that tests read."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The root of the repository."""
