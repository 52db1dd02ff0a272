"""Finds and reads eval sets on disk; errors name the file, case and field of every problem."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue, ValidationError
from pydantic.alias_generators import to_snake

from traceweir.schemas.base import JsonObject
from traceweir.schemas.eval_set import EvalCase, EvalSet, SessionInput
from traceweir.schemas.eval_set_files import UnknownFormatError, format_of, modern
from traceweir.schemas.text import printable
from traceweir.streams.intake.formats.adk_invocations import IGNORED_OF_ADK
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.intake.formats.other_documents import EVAL_SET
from traceweir.streams.intake.formats.recognition import misplaced
from traceweir.streams.intake.formats.unread_keys import UnreadKeys
from traceweir.streams.lab.evals.json_text import MAX_BYTES, decoded, parsed, rendered

TEST_SUFFIX = ".test.json"
_NAMED = 10
_TAGS = ("data", "events")
"""The tags by which pydantic names the kinds of intermediate data in an error's location."""


_IGNORED = IGNORED_OF_ADK.with_keys({SessionInput: ("events",), EvalCase: ("description", "name", "metadata")})


@dataclass(frozen=True)
class Chosen:
    """A file, and its selected cases."""

    path: Path
    eval_ids: frozenset[str] | None = None
    """None: all."""


@dataclass(frozen=True)
class EvalFile:
    """An eval set that was read from a file."""

    path: Path
    eval_set: EvalSet
    cases: tuple[EvalCase, ...]
    """The selected cases, in the order of the file."""
    old: bool
    """Whether the file is in one of ADK's old formats."""
    unread: tuple[str, ...] = ()
    """A sentence for each key that is not read."""


def chosen_files(arguments: Sequence[str]) -> list[Chosen]:
    """Returns the files that arguments name.

    An argument is a file, a file with cases (`FILE:case1,case2`), or a folder, for all `*.test.json` in and below it.

    Raises:
        InputError: a folder has no test file, or no case is named after a colon.
    """
    chosen: dict[Path, Chosen] = {}
    for argument in arguments:
        for each in _named_by(argument):
            former = chosen.get(each.path)
            if former is None:
                chosen[each.path] = each
            elif former.eval_ids is None or each.eval_ids is None:
                chosen[each.path] = Chosen(each.path)
            else:
                chosen[each.path] = Chosen(each.path, former.eval_ids | each.eval_ids)
    return list(chosen.values())


def _named_by(argument: str) -> list[Chosen]:
    path = Path(argument)
    # Unlike Path.is_dir, os.path.isdir returns False for a name that is too long.
    if os.path.isdir(argument):
        # Sorted, so that two runs report in the same order.
        found = sorted(path.rglob("*" + TEST_SUFFIX))
        if not found:
            raise InputError(
                f"{argument}: neither this folder nor a folder below it contains a *{TEST_SUFFIX} file. "
                "Name the file of an eval set instead."
            )
        return [Chosen(each) for each in found]
    name, colon, ids = argument.rpartition(":")
    if colon and not os.path.exists(argument):
        wanted = frozenset(part.strip() for part in ids.split(",") if part.strip())
        if not wanted:
            raise InputError(
                f"{argument}: no case is named after the colon. Write FILE:case1,case2, or only FILE for all cases."
            )
        return [Chosen(Path(name), wanted)]
    return [Chosen(path)]


def read_eval_file(chosen: Chosen) -> EvalFile:
    """Reads an eval set in any of ADK's formats.

    Raises:
        InputError: the file cannot be read or is no eval set; the message names every problem.
    """
    name = str(chosen.path)
    try:
        document = read_json(chosen.path)
        old = format_of(document) != "eval set"
        new = modern(document, chosen.path.name)
    except UnknownFormatError as error:
        raise not_an_eval_set(chosen.path, f"{name}: {error}.") from None
    except InputError as error:
        raise not_an_eval_set(chosen.path, str(error)) from None
    eval_set = checked(new, name)
    unread_keys = UnreadKeys()
    unread_keys.note_model(EvalSet, new, _IGNORED)
    unread = tuple(unread_keys.lines(name))
    if chosen.eval_ids is None:
        return EvalFile(chosen.path, eval_set, tuple(eval_set.eval_cases), old, unread)
    there = {case.eval_id for case in eval_set.eval_cases}
    if missing := sorted(chosen.eval_ids - there):
        raise InputError(
            f"{name}: there is no case {', '.join(_shown(each) for each in missing)}; there are {listed(sorted(there))}."
        )
    cases = tuple(case for case in eval_set.eval_cases if case.eval_id in chosen.eval_ids)
    return EvalFile(chosen.path, eval_set, cases, old, unread)


def not_an_eval_set(path: Path, problem: str) -> InputError:
    """Returns the error of a file that is no eval set: what the file is, if its keys show it, otherwise the problem."""
    try:
        what = misplaced(read_text(path), EVAL_SET)
    except InputError:
        what = None
    return InputError(problem if what is None else f"{path}: {what}.")


def read_json(path: Path) -> JsonValue:
    """Returns the JSON document in a file of at most 64 MiB.

    Raises:
        InputError: the file cannot be read; the message shows line and column, and the fix.
    """
    return parsed(read_text(path), str(path))


def read_text(path: Path) -> str:
    """Returns the text of a file of at most 64 MiB.

    Raises:
        InputError: the file cannot be opened, is too large, or is not UTF-8.
    """
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            raw = stream.read(MAX_BYTES + 1) if size <= MAX_BYTES else b""
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Name a readable JSON file.") from None
    if size > MAX_BYTES or len(raw) > MAX_BYTES:
        raise InputError(
            f"{path}: is larger than the maximum of {MAX_BYTES // 1024**2} MiB. Split the file into several eval sets."
        )
    return decoded(raw, str(path))


def checked(document: JsonObject, name: str) -> EvalSet:
    """Validates a document as an eval set.

    Raises:
        InputError: the document is no eval set; the message names file, case and field of every problem.
    """
    text = rendered(document, name)
    try:
        return EvalSet.model_validate_json(text)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
    problems = [
        f"{name}: {_field(document, item['loc'], item['type'])}{_rule(item['msg'], item['type'])}"
        for item in found[:_NAMED]
    ]
    if len(found) > _NAMED:
        problems.append(f"and {len(found) - _NAMED} more")
    raise InputError("\n".join(problems))


def _field(document: JsonObject, loc: Sequence[str | int], kind: str) -> str:
    # For a missing key pydantic reports the alias; for an unknown key, the key as written in the file.
    last = len(loc) - 1 if kind == "extra_forbidden" else len(loc)
    path = [
        to_snake(part) if isinstance(part, str) and at < last else str(part)
        for at, part in enumerate(loc)
        if part not in _TAGS or at == last
    ]
    cases = document.get("eval_cases")
    case = cases[loc[1]] if isinstance(cases, list) and len(loc) > 1 and isinstance(loc[1], int) else None
    where = (
        f"case {_shown(case['eval_id'])}: " if isinstance(case, dict) and isinstance(case.get("eval_id"), str) else ""
    )
    if where:
        path = path[2:]
    return f"{where}{'.'.join(path)}: " if path else where


def _rule(message: str, kind: str) -> str:
    if kind == "extra_forbidden":
        return "this key does not exist; correct its spelling, or remove the key"
    return printable(message.removeprefix("Value error, "))


def _shown(eval_id: object) -> str:
    return repr(printable(str(eval_id), 80))


def listed(names: Sequence[str]) -> str:
    """Formats the first ids of a list for a message."""
    shown = ", ".join(map(_shown, names[:_NAMED]))
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown or "none"
