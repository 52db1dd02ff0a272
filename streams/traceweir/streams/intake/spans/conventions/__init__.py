"""The conventions by which libraries and standards write what agents did: one file each, with all that is known of it.

Begin with `convention.Convention`, the value that such a file defines. A new one gets its place in `CONVENTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import TypeVar

from traceweir.streams.intake.spans.conventions.adk import ADK
from traceweir.streams.intake.spans.conventions.agent_365 import AGENT_365
from traceweir.streams.intake.spans.conventions.agent_framework import AGENT_FRAMEWORK
from traceweir.streams.intake.spans.conventions.agentops import AGENTOPS
from traceweir.streams.intake.spans.conventions.agentscope import AGENTSCOPE
from traceweir.streams.intake.spans.conventions.agno import AGNO
from traceweir.streams.intake.spans.conventions.ai_sdk import AI_SDK
from traceweir.streams.intake.spans.conventions.autogen import AUTOGEN
from traceweir.streams.intake.spans.conventions.aws_distro import AWS_DISTRO
from traceweir.streams.intake.spans.conventions.azure import AZURE
from traceweir.streams.intake.spans.conventions.bedrock_agents import BEDROCK_AGENTS
from traceweir.streams.intake.spans.conventions.claude_code import CLAUDE_CODE
from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.conventions.crewai import CREWAI
from traceweir.streams.intake.spans.conventions.dspy import DSPY
from traceweir.streams.intake.spans.conventions.genai import GENAI
from traceweir.streams.intake.spans.conventions.genkit import GENKIT
from traceweir.streams.intake.spans.conventions.google_genai import GOOGLE_GENAI
from traceweir.streams.intake.spans.conventions.haystack import HAYSTACK
from traceweir.streams.intake.spans.conventions.instructor import INSTRUCTOR
from traceweir.streams.intake.spans.conventions.laminar import LAMINAR
from traceweir.streams.intake.spans.conventions.langchain import LANGCHAIN
from traceweir.streams.intake.spans.conventions.langchain4j import LANGCHAIN4J
from traceweir.streams.intake.spans.conventions.langfuse import LANGFUSE
from traceweir.streams.intake.spans.conventions.langsmith import LANGSMITH
from traceweir.streams.intake.spans.conventions.langwatch import LANGWATCH
from traceweir.streams.intake.spans.conventions.litellm import LITELLM
from traceweir.streams.intake.spans.conventions.livekit import LIVEKIT
from traceweir.streams.intake.spans.conventions.llama_index import LLAMA_INDEX
from traceweir.streams.intake.spans.conventions.loongsuite import LOONGSUITE
from traceweir.streams.intake.spans.conventions.mastra import MASTRA
from traceweir.streams.intake.spans.conventions.mcp import MCP
from traceweir.streams.intake.spans.conventions.mlflow import MLFLOW
from traceweir.streams.intake.spans.conventions.openai_agents import OPENAI_AGENTS
from traceweir.streams.intake.spans.conventions.openinference import OPENINFERENCE
from traceweir.streams.intake.spans.conventions.openlit import OPENLIT
from traceweir.streams.intake.spans.conventions.pipecat import PIPECAT
from traceweir.streams.intake.spans.conventions.pydantic_ai import PYDANTIC_AI
from traceweir.streams.intake.spans.conventions.semantic_kernel import SEMANTIC_KERNEL
from traceweir.streams.intake.spans.conventions.smolagents import SMOLAGENTS
from traceweir.streams.intake.spans.conventions.source import Source, ranked
from traceweir.streams.intake.spans.conventions.spring_ai import SPRING_AI
from traceweir.streams.intake.spans.conventions.strands import STRANDS
from traceweir.streams.intake.spans.conventions.traceloop import TRACELOOP
from traceweir.streams.intake.spans.conventions.weave import WEAVE

_Hook = TypeVar("_Hook")

CONVENTIONS: tuple[Convention, ...] = (
    # What a framework adds to spans that instrumentations of other conventions write.
    ADK,
    OPENAI_AGENTS,
    LANGCHAIN,
    LLAMA_INDEX,
    LITELLM,
    GOOGLE_GENAI,
    INSTRUCTOR,
    BEDROCK_AGENTS,
    LIVEKIT,
    PIPECAT,
    # Attributes that say by their names who wrote them.
    OPENINFERENCE,
    MLFLOW,
    PYDANTIC_AI,
    AGENTOPS,
    TRACELOOP,
    LANGSMITH,
    LANGFUSE,
    AI_SDK,
    MASTRA,
    SPRING_AI,
    LANGCHAIN4J,
    MCP,
    CREWAI,
    SMOLAGENTS,
    HAYSTACK,
    AUTOGEN,
    CLAUDE_CODE,
    GENKIT,
    LOONGSUITE,
    # What a backend's SDK adds to spans of other conventions.
    LAMINAR,
    LANGWATCH,
    WEAVE,
    AWS_DISTRO,
    # The standard, as one library writes it.
    SEMANTIC_KERNEL,
    AGENT_FRAMEWORK,
    AGENT_365,
    STRANDS,
    AGENTSCOPE,
    OPENLIT,
    DSPY,
    AZURE,
    AGNO,
    # The standard itself, which recognises all that is left.
    GENAI,
)
"""All conventions, the most specific first: the first that recognises a span tells what it is."""
STANDARD_FIRST: tuple[Convention, ...] = (GENAI, *(each for each in CONVENTIONS if each is not GENAI))
"""All conventions in the order in which values are looked for: what the standard says counts before all others."""


def hooks_of(field: Callable[[Convention], _Hook | None]) -> tuple[_Hook, ...]:
    """Returns the functions in a field of all conventions, the most specific convention first."""
    return tuple(hook for hook in map(field, CONVENTIONS) if hook is not None)


def keys_of(field: Callable[[Convention], Iterable[str]]) -> tuple[str, ...]:
    """Returns the attributes in a field of all conventions, in the order in which they are looked for, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(map(field, STANDARD_FIRST))))


def sources_of(field: Callable[[Convention], Iterable[Source]]) -> tuple[Source, ...]:
    """Returns the sources in a field of all conventions, in the order in which they are asked: by rank, then as the keys."""
    return ranked(chain.from_iterable(map(field, STANDARD_FIRST)))
