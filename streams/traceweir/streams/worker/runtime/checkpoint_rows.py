"""Names the rows of a partition that belong to its checkpoint and not to a stage; `row_formats` names one more."""

from __future__ import annotations

OFFSETS = b"checkpoint/offsets"
"""Row of the offsets, by input. It is part of the checkpoint, so its offsets always belong to the other rows."""
INPUTS_ROW = b"checkpoint/inputs"
"""Row with the ids of the logs to which the offsets belong, by input."""
WRITER_ROW = b"checkpoint/writer"
"""Row with the transactional id of the worker that writes the partition's checkpoints."""
