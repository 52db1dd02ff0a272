"""Plays simulations: `python -m tests.simulation`; with `--seed N --trace` the story of one."""

from __future__ import annotations

import os
import sys

if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets of strings must be the same in every run
    os.execve(
        sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]], os.environ | {"PYTHONHASHSEED": "0"}
    )

from tests.simulation import seams

seams.replace_clocks_and_uuids()

from tests.simulation.command import main  # noqa: E402  # the clocks must be replaced first

sys.exit(main())
