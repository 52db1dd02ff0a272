"""Scores sessions in processes of their own, so that a slow, large or crashing scorer does not harm its worker.

Begin with `processes`, which divides sessions among processes. `supervisor` starts and replaces a process (`process` is
the worker's side, `child` the other one, `protocol` what they say), and `quarantine` tries the sessions that were in
flight when a process died.
"""
