"""The topics that no worker creates, because commands keep something of their own there."""

from __future__ import annotations

from traceweir.streams.base.topics import DEFAULT_PREFIX, CleanupPolicy, exports_topic, shadows_topic

OF_COMMANDS: dict[str, CleanupPolicy] = {
    shadows_topic(DEFAULT_PREFIX): "compact",
    exports_topic(DEFAULT_PREFIX): "compact",
}
"""The cleanup policy of each, by name. The manifests, and the page on access control, name all of them."""
