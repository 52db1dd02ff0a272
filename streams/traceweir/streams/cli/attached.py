"""Runs a command that ends when its parent has ended: `python -m traceweir.streams.cli.attached worker`."""

from __future__ import annotations

import sys

from traceweir.streams.base.attached import end_with_input
from traceweir.streams.cli.main import main

if __name__ == "__main__":
    end_with_input()
    main(sys.argv[1:])
