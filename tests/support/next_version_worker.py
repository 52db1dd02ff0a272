"""Runs a worker of a version that writes the made-up next format of rows; takes the arguments of `traceweir`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from tests.support.next_format import NEXT_FORMATS, of_next_version

from traceweir.streams.base.stages.base import StageSpec
from traceweir.streams.base.topics import StageName
from traceweir.streams.cli.main import main
from traceweir.streams.pipeline.topology import Topology
from traceweir.streams.worker import app


def install() -> None:
    """Makes the workers of this process those of the next version."""
    present = Topology.specs

    def specs(self: Topology, stages: Sequence[StageName]) -> list[StageSpec]:
        return [of_next_version(spec) for spec in present(self, stages)]

    Topology.specs = specs  # type: ignore[method-assign]
    app.create_app = partial(app.create_app, formats=NEXT_FORMATS)


if __name__ == "__main__":
    install()
    main(sys.argv[1:])
