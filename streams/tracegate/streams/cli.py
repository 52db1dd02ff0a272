import sys

from tracegate.scorers.plan import read_plan
from tracegate.streams.settings import load_settings


def main():
    cmd = sys.argv[1]
    if cmd == "worker":
        from tracegate.streams.worker import run_worker

        sys.exit(
            run_worker(
                load_settings(),
                read_plan(open(sys.argv[2]).read() if len(sys.argv) > 2 else None),
                ["assemble", "score", "gate"],
            )
        )
