"""The problems of a document are said without words of the validation library."""

import pytest
from pydantic import ValidationError

from traceweir.schemas.base import explain
from traceweir.schemas.events import EVENT


def test_a_document_without_a_type_is_told_which_key_is_missing() -> None:
    with pytest.raises(ValidationError) as caught:
        EVENT.validate_json('{"session_id": "s1"}')
    assert explain(caught.value) == (
        "document: the key that names the kind of the document is missing: `type` in an event, `@type` in a trace"
    )
