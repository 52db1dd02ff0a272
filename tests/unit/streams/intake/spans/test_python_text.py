"""Python's text of an object is read as the object, and any other text stays what it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceweir.streams.intake.spans.python_text import python_value

TEXTS = st.text(st.characters(exclude_categories=["Cs"], max_codepoint=0xFFFF), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(value=st.dictionaries(TEXTS, VALUES, min_size=1, max_size=4))
def test_an_object_is_read_from_its_text(value: dict[str, Any]) -> None:
    text = repr(value)
    assert python_value(text) == (value if text.startswith("{'") else text)


@pytest.mark.parametrize(
    "text",
    [
        "{'a': (1, 2)}",
        "{'a': {1, 2}}",
        "{'a': nan}",
        "{'a': <object at 0x7f>}",
        "{'a': 1",
        "{'a': 'b",
        "{'it''s'}",
        "{'a': \"b}",
        "{'see below'}",
        "a",
        "",
        "{'a': " + "[" * 60_000,
        "{'a': '" + "x" * 70_000 + "'}",
    ],
)
def test_another_text_stays_what_it_is(text: str) -> None:
    assert python_value(text) == text
