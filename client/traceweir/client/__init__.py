"""Records what AI agents do, and sends it to Traceweir through Kafka; imports nothing else of Traceweir.

Begin at `recorder`. `otel` sends the spans of the OpenTelemetry SDK, and `adk` is a plugin of Google ADK; each needs an
extra of this distribution.
"""

from traceweir.client.delivery import Counts, QueueLimits
from traceweir.client.dimensions import Dimensions
from traceweir.client.reasoning import ReasoningTraces
from traceweir.client.recorder import Recorder

__all__ = ["Counts", "Dimensions", "QueueLimits", "ReasoningTraces", "Recorder"]
