"""Collects the steps of an invocation for its ReasoningTrace, bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from traceweir.client.json_values import plain, short_text

Visibility = Literal["private", "org", "network"]
VISIBILITIES = ("private", "org", "network")

MAX_STEPS = 200
"""Maximum number of steps; further ones are left out."""
MAX_CHARS = 80_000
"""Maximum number of characters of all steps together, after which they have no content."""
_MAX_TEXT_CHARS = 4_000
_CHARS_OF_BYTE = 5
"""Maximum number of characters that `plain` counts for a byte of JSON: `[1,1]` has two items of 8 in 5 bytes."""
_MAX_SUMMARY_CHARS = 10_000
_MAX_DOMAIN_CHARS = 1_024


@dataclass(frozen=True, slots=True)
class ReasoningTraces:
    """What the reasoning traces of a recorder have in common."""

    task_domain: str
    """Traces of the same domain are compared for novelty; longer than 1,024 characters, it is cut."""
    visibility: Visibility = "private"
    """Who may see the traces; only `network` is published."""

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
            ValueError: the domain is empty, or there is no such visibility.
        """
        if not self.task_domain:
            raise ValueError("task_domain is empty; name the domain of the traces, such as 'travel'")
        if self.visibility not in VISIBILITIES:
            raise ValueError(f"visibility must be one of {', '.join(VISIBILITIES)}, got {self.visibility!r}")


class Reasoning:
    """Holds the steps of one invocation. Tools and threads can add steps at the same time."""

    def __init__(self, traces: ReasoningTraces, agent_id: str) -> None:
        """Begins without steps.

        Args:
            traces: The domain and the visibility of the trace.
            agent_id: Name of the agent; can be empty.
        """
        self._domain = short_text(traces.task_domain, _MAX_DOMAIN_CHARS)
        self._visibility = traces.visibility
        self._agent_id = agent_id
        self._created_at = ""
        self._objective = ""
        self._steps: list[dict[str, Any]] = []
        self._chars = MAX_CHARS
        self._failed_before: set[str] = set()

    def begin(self, created_at: str, objective: str) -> None:
        """Sets the time and the question."""
        self._created_at = created_at
        self._objective = objective[:_MAX_SUMMARY_CHARS]

    def thought(self, text: str) -> None:
        """Adds a text of the agent."""
        self._add({"type": "thought", "content": self._cut(text)})

    def called(self, name: str, args: dict[str, Any] | None, size: int) -> None:
        """Adds a tool call; a call after an error of the same tool recovers from it.

        Args:
            name: Name of the tool.
            args: The arguments, which nobody changes any more; None if they are not known.
            size: Number of bytes of the arguments as JSON.
        """
        if len(self._steps) >= MAX_STEPS:
            return
        step: dict[str, Any] = {
            "type": "error_recovery" if name in self._failed_before else "tool_call",
            "tool": {"name": name},
        }
        self._failed_before.discard(name)
        if args is not None:
            lost = ""
            # Only then can a bound be reached.
            if size * _CHARS_OF_BYTE >= min(self._chars, _MAX_TEXT_CHARS):
                args, lost = plain(args, min(self._chars, _MAX_TEXT_CHARS))
            if not lost:
                step["input"] = args
                self._chars -= size
        self._add(step)

    def observed(self, name: str, output: str, *, failed: bool) -> None:
        """Adds the result, as text or JSON, or the error message of a tool."""
        if failed:
            self._failed_before.add(name)
        if len(self._steps) < MAX_STEPS:
            self._add({"type": "observation", "tool": {"name": name}, "output_summary": self._cut(output)})

    def document(
        self, trace_id: str, session_id: str, invocation_id: str, answer: str, *, failed: bool
    ) -> dict[str, Any]:
        """Returns the trace. The recorder knows neither confidence nor quality: confidence is 1 unless the agent failed."""
        steps = self._steps or [{"type": "thought", "content": answer[:_MAX_TEXT_CHARS] or "No step was recorded."}]
        return {
            "@context": "https://openknowledgepulse.org/schema/v1",
            "@type": "ReasoningTrace",
            "id": trace_id,
            "metadata": {
                "created_at": self._created_at,
                **({"agent_id": self._agent_id} if self._agent_id else {}),
                "task_domain": self._domain,
                "success": not failed,
                "quality_score": 0.0,
                "visibility": self._visibility,
                "privacy_level": "private" if self._visibility == "private" else "aggregated",
                "session_id": session_id,
                "invocation_id": invocation_id,
            },
            "task": {"objective": self._objective or "The question was not recorded."},
            "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
            "outcome": {"result_summary": answer[:_MAX_SUMMARY_CHARS], "confidence": 0.0 if failed else 1.0},
        }

    def _add(self, step: dict[str, Any]) -> None:
        if len(self._steps) < MAX_STEPS:
            self._steps.append(step)

    def _cut(self, text: str) -> str:
        kept = text[: max(min(self._chars, _MAX_TEXT_CHARS), 0)]
        self._chars -= len(kept)
        return kept
