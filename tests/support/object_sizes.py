"""Counts what is reachable from some objects: the items of each container by its place, and the objects of each class.

A place is the class and the attribute that lead to a container, such as `Lane.stages`, so that a new table or list is counted
without being named here. A leak is a place, or a class, whose number grows without end.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

CONTAINERS = (dict, list, set, frozenset, tuple, deque, bytearray)
"""The containers whose items are counted, with the classes that follow from them."""
_CACHED = type(lru_cache(len))
_ATOMS = (str, bytes, int, float, complex, type(None), type, ModuleType, CodeType)


def sizes(roots: Mapping[str, object], leaves_out: Callable[[object], bool] = lambda found: False) -> Counter[str]:
    """Returns the number of items by place, and the number of objects by class (`objects of ...`).

    Args:
        roots: Where to begin, by name.
        leaves_out: Returns whether an object, and what only it leads to, is not counted.
    """
    counts: Counter[str] = Counter()
    # What is found is kept alive, so that no other object gets the id of one that was seen.
    seen: dict[int, object] = {}
    waiting: deque[tuple[str, object]] = deque(roots.items())
    while waiting:
        place, found = waiting.popleft()
        if isinstance(found, _ATOMS) or id(found) in seen:
            continue
        seen[id(found)] = found
        if leaves_out(found):
            continue
        if _is_bounded_cache(found):
            continue
        if isinstance(found, CONTAINERS):
            if not isinstance(found, tuple) and getattr(found, "maxlen", None) is None:
                counts[place] += len(found)
            waiting.extend(_items(place, found))
        else:
            counts[f"objects of {_class_of(found)}"] += 1
        waiting.extend(_attributes(found))
    return counts


def grown(early: Sequence[Counter[str]], late: Sequence[Counter[str]], allowed: int = 0) -> dict[str, tuple[int, int]]:
    """Returns what was always larger late than ever early: by place, the largest early and the smallest late number.

    What only varies is not in it, because its smallest late number is not above its largest early one.

    Args:
        early: Samples of the beginning, when everything that is bounded is full.
        late: Samples of the end.
        allowed: By how many items a place can grow, because of what happens for the first time after the early samples.
    """
    places = set[str]().union(*late)
    numbers = {place: (max(each[place] for each in early), min(each[place] for each in late)) for place in places}
    return {place: (most, least) for place, (most, least) in sorted(numbers.items()) if least > most + allowed}


def _is_bounded_cache(found: Any) -> bool:
    """Returns whether an object is a function with `functools.lru_cache`, whose bound is stated and holds by itself."""
    return isinstance(found, _CACHED) and found.cache_info().maxsize is not None


def _items(place: str, found: Any) -> Iterator[tuple[str, object]]:
    inside = place if place.endswith("[]") else f"{place}[]"
    if isinstance(found, dict):
        yield from ((inside, key) for key in list(found))
        yield from ((inside, value) for value in list(found.values()))
    elif not isinstance(found, bytearray):
        yield from ((inside, item) for item in list(found))


def _attributes(found: object) -> Iterator[tuple[str, object]]:
    name = _class_of(found)
    if isinstance(found, MethodType):
        yield name, found.__self__
        yield name, found.__func__
    elif isinstance(found, FunctionType):
        for variable, cell in zip(found.__code__.co_freevars, found.__closure__ or (), strict=True):
            yield from ((f"{found.__qualname__}.{variable}", content) for content in _contents(cell))
        yield f"{found.__qualname__}.defaults", found.__defaults__
        yield f"{found.__qualname__}.attributes", found.__dict__
    elif isinstance(found, FrameType):
        yield from ((f"{found.f_code.co_qualname}.{name}", each) for name, each in list(found.f_locals.items()))
    else:
        named = dict(_named_attributes(found))
        yield from ((f"{name}.{attribute}", each) for attribute, each in named.items())
        if not isinstance(found, CONTAINERS):
            known = {id(each) for each in named.values()}
            own = id(getattr(found, "__dict__", None))
            yield from (
                (f"{name}.", each) for each in gc.get_referents(found) if id(each) not in known and id(each) != own
            )


def _contents(cell: Any) -> Iterable[object]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # the variable has no value yet
        return ()


def _named_attributes(found: object) -> Iterator[tuple[str, object]]:
    own = found.__dict__ if isinstance(getattr(found, "__dict__", None), dict) else {}
    yield from list(own.items())
    for each in type(found).__mro__:
        slots = each.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot not in ("__dict__", "__weakref__"):
                private = slot.startswith("__") and not slot.endswith("__")
                name = f"_{each.__name__.lstrip('_')}{slot}" if private else slot
                member: Any = each.__dict__.get(name)
                if member is not None and hasattr(member, "__get__"):
                    try:
                        yield name, member.__get__(found, each)
                    except AttributeError:  # never set
                        continue


def _class_of(found: object) -> str:
    return type(found).__qualname__


def module_roots(prefix: str) -> dict[str, object]:
    """Returns the global variables of all imported modules whose name begins with a prefix, by module and name."""
    return {
        f"{name}.{variable}": content
        for name, module in sorted(sys.modules.items())
        if name.startswith(prefix) and module is not None
        for variable, content in sorted(vars(module).items())
        if not variable.startswith("__")
    }
