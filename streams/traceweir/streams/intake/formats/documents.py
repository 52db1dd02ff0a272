"""Documents from a file: JSON Lines, one JSON array, or pretty-printed objects."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import BinaryIO, NamedTuple

from pydantic import JsonValue

from traceweir.streams.base.json_values import ReadJson, json_as_written, read_json

BOM = b"\xef\xbb\xbf"
BLANK = b" \t\r\n"
_DECODER = json.JSONDecoder()


class InputError(ValueError):
    """Input that cannot be used. The message names the file and the place, the problem, and the way out."""


NO_JSON = ReadJson(None)
"""What a document that is no JSON is read as."""


class Document(NamedTuple):
    """One document of the input, not parsed yet."""

    number: int
    """The position, from 1: the line number in JSON Lines, otherwise the number of the element."""
    raw: bytes
    """The unchanged bytes of the file, valid JSON or not, without line ends and byte order mark."""


def read_documents(stream: BinaryIO) -> Iterator[Document]:
    """Yields the documents of a file or of standard input, in order.

    The beginning of the input determines its form. `[` starts one array, unless the array ends on its line and more
    follows: then the input is JSON Lines. An object that is incomplete on its line starts a sequence of pretty-printed
    objects. Any other input is JSON Lines, and each line is yielded when it is read; blank lines are skipped, and a
    line that is not JSON is yielded as well. Numbers, key order and spaces are kept as written, because the content is
    not converted.

    Raises:
        InputError: the stream, an array, or a sequence of pretty-printed objects cannot be read to the end.

    >>> import io
    >>> list(read_documents(io.BytesIO(b'[{"a": 1}, {"b": 2.50}]')))
    [Document(number=1, raw=b'{"a": 1}'), Document(number=2, raw=b'{"b": 2.50}')]
    >>> list(read_documents(io.BytesIO(b'{"a": 1}\\n\\nnot JSON\\n')))
    [Document(number=1, raw=b'{"a": 1}'), Document(number=3, raw=b'not JSON')]
    """
    lines = _lines(stream)
    first = next(lines, None)
    if first is None:
        return
    documents = [first]
    if first.raw.lstrip(BLANK).startswith(b"["):
        documents.extend(islice(lines, 1))
        if len(documents) == 1 or not _is_json(first.raw):
            documents = _array_elements(_InputText(name_of(stream), [*documents, *lines]))
    elif _starts_unfinished_object(first.raw):
        documents.extend(lines)
        try:
            documents = _object_sequence(_InputText(name_of(stream), documents))
        except InputError:
            cut_off = len(documents) == 1 or _is_json(documents[1].raw)
            if not cut_off:
                raise
    yield from documents
    yield from lines


def json_of(raw: bytes) -> JsonValue:
    """Parses a document. A document that is JSON within a JSON string, as ADK has written some files, is parsed twice.

    Raises:
        ValueError: the bytes are not JSON.

    >>> json_of(b'{"a": 1}') == json_of(b'"{\\\\"a\\\\": 1}"')
    True
    """
    return read_document(raw).value


def read_document(raw: bytes) -> ReadJson:
    """Parses a document as `json_of` does, and tells what had to be replaced in it.

    Raises:
        ValueError: the bytes are not JSON.
    """
    found = read_json(raw)
    if isinstance(found.value, str) and found.value.lstrip().startswith("{"):
        with suppress(ValueError):
            return read_json(found.value)
    return found


def document_as_written(raw: bytes) -> JsonValue:
    """Parses a document as `read_document` does, and replaces nothing in it.

    Raises:
        ValueError: the bytes are not JSON.
    """
    found = json_as_written(raw)
    return json_as_written(found) if isinstance(found, str) else found


def name_of(stream: BinaryIO) -> str:
    """Returns the name of an input for messages: its path, `standard input` or `the input`."""
    name = getattr(stream, "name", None)
    if name in (0, "<stdin>"):
        return "standard input"
    return name if isinstance(name, str) else "the input"


def unreadable(name: str, error: OSError) -> InputError:
    """Returns the error of an input that the operating system refuses to open or to read."""
    return InputError(
        f"{name}: cannot be read ({error.strerror or error}). Name a readable file, or - for standard input."
    )


def _raw_lines(stream: BinaryIO) -> Iterator[bytes]:
    try:
        yield from stream
    except OSError as error:
        # For example a special file of the kernel, or a closed standard input.
        raise unreadable(name_of(stream), error) from None


def _lines(stream: BinaryIO) -> Iterator[Document]:
    for number, line in enumerate(_raw_lines(stream), start=1):
        if number == 1:
            line = line.removeprefix(BOM)
        if line.strip(BLANK):
            yield Document(number, line.removesuffix(b"\n").removesuffix(b"\r"))


def _is_json(raw: bytes) -> bool:
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return True


def _starts_unfinished_object(raw: bytes) -> bool:
    """Returns whether a line begins an object that can continue on the next line.

    Such a line ends with `{`, `[`, `,` or `:`. A truncated line of JSON Lines seldom ends with one of these characters.
    """
    text = raw.strip(BLANK)
    return text.startswith(b"{") and text.endswith((b"{", b"[", b",", b":")) and not _is_json(text)


class _InputText:
    """The text of a whole input; its errors name the line and the column in the file."""

    def __init__(self, name: str, lines: list[Document]) -> None:
        self.name = name
        numbered = {line.number: line.raw for line in lines}
        joined = b"\n".join(numbered.get(number, b"") for number in range(1, lines[-1].number + 1))
        try:
            self.text = joined.decode()
        except UnicodeDecodeError as error:
            self.text = joined[: error.start].decode()
            raise self.error(len(self.text), "is not UTF-8", "Save the file as UTF-8") from None

    def skip(self, position: int) -> int:
        """Returns the next non-blank position."""
        while self.text[position : position + 1] in (" ", "\t", "\r", "\n"):
            position += 1
        return position

    def value(self, position: int) -> tuple[bytes, int]:
        """Returns the unchanged bytes of the JSON value that begins at `position`, and the position after the value."""
        try:
            _, end = _DECODER.raw_decode(self.text, position)
        except json.JSONDecodeError as error:
            raise self.error(error.pos, f"is not JSON ({error.msg})", _FIX) from None
        except RecursionError:
            raise self.error(position, "is nested too deeply to be read", _FIX) from None
        except ValueError:
            # Python's limit, which keeps the conversion of digits from taking quadratic time.
            digits = sys.get_int_max_str_digits()
            raise self.error(position, f"has an integer of more than {digits} digits", _FIX) from None
        return self.text[position:end].encode(), end

    def error(self, position: int, what: str, fix: str) -> InputError:
        line = self.text.count("\n", 0, position) + 1
        column = position - self.text.rfind("\n", 0, position)
        return InputError(f"{self.name}, line {line}, column {column}: the input {what}. {fix}.")


_FIX = (
    "Correct the input there, or write one document per line (JSON Lines), "
    "because an unreadable line of JSON Lines does not stop the others"
)


def _array_elements(whole: _InputText) -> list[Document]:
    found: list[Document] = []
    position = whole.skip(whole.skip(0) + 1)
    closed = whole.text[position : position + 1] == "]"
    while not closed:
        raw, position = whole.value(position)
        found.append(Document(len(found) + 1, raw))
        position = whole.skip(position)
        mark = whole.text[position : position + 1]
        if mark not in (",", "]"):
            raise whole.error(position, f"has neither a comma nor ] after element {len(found)} of its array", _FIX)
        closed = mark == "]"
        if not closed:
            position = whole.skip(position + 1)
    position = whole.skip(position + 1)
    if position < len(whole.text):
        raise whole.error(position, "continues after the end of its array", _FIX)
    return found


def _object_sequence(whole: _InputText) -> list[Document]:
    found: list[Document] = []
    position = whole.skip(0)
    while position < len(whole.text):
        raw, position = whole.value(position)
        found.append(Document(len(found) + 1, raw))
        position = whole.skip(position)
    return found
