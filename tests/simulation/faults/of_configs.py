"""What people and other programs do to the topic `configs`."""

from __future__ import annotations

from tests.simulation.faults.registry import Acts, fault


@fault(3.5, only=("records", "judged"), needs="pushes")
def push(f: Acts) -> None:
    """Someone pushes a config, rolls one back, or withdraws one."""
    f.note("config pushed", f.world.pushes.push(f.rnd))


@fault(4.0, only=("judged",), needs="certified")
def push_certificate(f: Acts) -> None:
    """Someone certifies the judge of a config in effect, or withdraws its certificate."""
    f.note("certificate pushed", f.world.pushes.push(f.rnd, certificates=True))


@fault(1.0, only=("records", "judged"), needs="pushes")
def refused_config(f: Acts) -> None:
    """A program writes a record that is no config to the topic of configs."""
    what = f.world.pushes.send_refused(f.rnd)
    f.note("record that is no config", f"a record on the topic configs is {what}")
