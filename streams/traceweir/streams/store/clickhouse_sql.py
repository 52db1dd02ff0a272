"""Turns a query of the store, which is written in DuckDB's SQL, into a query in ClickHouse's SQL.

Queries have one definition for both databases. SQLGlot knows most differences; this module knows the remaining ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp

EARLIEST, LATEST = datetime.fromisoformat("1900-01-01"), datetime.fromisoformat("2299-12-31T23:59:59")
"""The times that a column of ClickHouse can represent, in UTC without a zone."""
TIME = "DateTime64(6, 'UTC')"
"""The type of a time."""
_FUNCTIONS = {"epoch_us": "toUnixTimestamp64Micro", "md5_number_lower": "cityHash64"}
"""ClickHouse's functions by DuckDB's names. Each database has its own hash for the column `key`."""
_TEXTS = "Array(String)"
_TYPES: dict[type, str] = {bool: "Bool", int: "Int64", float: "Float64", str: "String", list: "Array(UInt64)"}


def translated(sql: str, parameters: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns a query of DuckDB and its parameters, as ClickHouse takes them.

    Args:
        sql: The query. Its parameters are written `$name`.
        parameters: The values by name: texts, numbers, times in UTC without a zone, and lists of keys.

    >>> translated("SELECT count(*) FILTER (n > 0) AS n FROM results WHERE key = md5_number_lower($id)", {"id": "a"})
    ('SELECT COUNT(*) FILTER(WHERE n > 0) AS n FROM results WHERE key = cityHash64({id: String})', {'id': 'a'})
    """
    types = tuple((name, _type_of(value)) for name, value in parameters.items())
    values = {
        name: stored_time(value).strftime("%Y-%m-%d %H:%M:%S.%f") if isinstance(value, datetime) else value
        for name, value in parameters.items()
    }
    return _translated(sql, types), values


def stored_time(moment: datetime) -> datetime:
    """Returns the nearest time that a column can represent.

    >>> str(stored_time(datetime.min))
    '1900-01-01 00:00:00'
    """
    return min(max(moment, EARLIEST), LATEST)


@lru_cache(maxsize=512)
def _translated(sql: str, types: tuple[tuple[str, str], ...]) -> str:
    known = dict(types)

    def with_types(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Parameter | exp.Placeholder):
            return exp.Placeholder(this=node.name, kind=known[node.name])
        return node

    tree = sqlglot.parse_one(sql, read="duckdb").transform(with_types)
    return tree.transform(_with_functions).sql("clickhouse")


def _with_functions(node: exp.Expr) -> exp.Expr:
    match node:
        case exp.Anonymous() if node.name.lower() in _FUNCTIONS:
            return exp.func(_FUNCTIONS[node.name.lower()], *node.expressions)
        case exp.LogicalOr():
            return exp.func("max", node.this)
        case exp.TryCast(this=exp.JSONExtract() as extract):
            # JSON whose value is no array gives no row, as DuckDB's TRY_CAST does.
            name = extract.expression.find(exp.JSONPathKey)
            return (
                exp.func("JSONExtract", extract.this, exp.Literal.string(name.this), exp.Literal.string(_TEXTS))
                if name
                else node
            )
    return node


def _type_of(value: object) -> str:
    return TIME if isinstance(value, datetime) else _TYPES[type(value)]
