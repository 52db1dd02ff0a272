"""Keeps names for addresses of pages in a file, so that a team finds a selection again."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from traceweir.schemas.text import printable
from traceweir.streams.board.dashboard.addresses import MAX_ADDRESS_CHARS, is_local
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.lab.evals.writing import write_whole

MAX_VIEWS = 200
"""Maximum number of saved views."""
MAX_NAME_CHARS = 100


class SavedView(BaseModel):
    """A name for an address of the dashboard."""

    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)]
    """The name."""
    address: Annotated[str, Field(min_length=1, max_length=MAX_ADDRESS_CHARS)]
    """The address: a path of the dashboard with its parameters."""


class ViewError(ValueError):
    """A view cannot be saved or removed; the message says why."""


_VIEWS: TypeAdapter[list[SavedView]] = TypeAdapter(list[SavedView])


class SavedViews:
    """The saved views of a dashboard; any thread may call the methods.

    Args:
        file: The file, which is created with the first view.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._writing = threading.Lock()

    def present(self) -> list[SavedView]:
        """Returns the views by name.

        Raises:
            ViewError: the file cannot be read, or has something else.
        """
        try:
            found = _VIEWS.validate_json(self._file.read_bytes())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ViewError(f"{self._file} cannot be read ({error.strerror or error}): correct its rights") from None
        except ValidationError:
            raise ViewError(
                f"{self._file} is no file of saved views: correct it, remove it, or name another one with "
                "TRACEWEIR_DASHBOARD_VIEWS"
            ) from None
        return sorted((each for each in found if is_local(each.address)), key=lambda each: each.name.casefold())

    def save(self, name: str, address: str) -> None:
        """Saves an address under a name; a view with this name has this address from now on.

        Raises:
            ViewError: the name or the address cannot be used, there are too many views, or the file cannot be written.
        """
        name = " ".join(name.split())
        if not name or len(name) > MAX_NAME_CHARS or not name.isprintable():
            raise ViewError(f"the name of a view has 1 to {MAX_NAME_CHARS} characters, all of them visible")
        if not is_local(address):
            raise ViewError(f"{printable(address, 100)!r} is not an address of this dashboard of at most "
                            f"{MAX_ADDRESS_CHARS} characters")  # fmt: skip
        with self._writing:
            others = [each for each in self.present() if each.name != name]
            if len(others) >= MAX_VIEWS:
                raise ViewError(f"there are {MAX_VIEWS} views, which is the most: remove one")
            self._write([*others, SavedView(name=name, address=address)])

    def remove(self, name: str) -> None:
        """Removes a view; one that does not exist is removed already.

        Raises:
            ViewError: the file cannot be read or written.
        """
        with self._writing:
            self._write([each for each in self.present() if each.name != name])

    def _write(self, views: list[SavedView]) -> None:
        try:
            self._file.absolute().parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._file, _VIEWS.dump_json(views, indent=2) + b"\n")
        except (OSError, InputError) as error:
            raise ViewError(f"the view cannot be saved: {error}") from None
