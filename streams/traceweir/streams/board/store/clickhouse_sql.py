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
KEY = "reinterpretAsUInt64(substring(MD5({}), 9, 8))"
"""The expression of the column `key`, as DuckDB's `md5_number_lower` computes it."""
_TYPES: dict[type, str] = {bool: "Bool", int: "Int64", float: "Float64", str: "String", list: "Array(UInt64)"}


def translated(sql: str, parameters: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns a query of DuckDB and its parameters, as ClickHouse takes them.

    Args:
        sql: The query. Its parameters are written `$name`.
        parameters: The values by name: texts, numbers, times in UTC without a zone, and lists of keys.

    >>> translated("SELECT count(*) FILTER (n > 0) AS n FROM rollups WHERE metric = $metric", {"metric": "match"})
    ('SELECT COUNT(*) FILTER(WHERE n > 0) AS n FROM rollups WHERE metric = {metric: String}', {'metric': 'match'})
    >>> translated("SELECT 1 FROM results WHERE key = md5_number_lower($id)", {"id": "a"})[0]
    'SELECT 1 FROM results WHERE key = reinterpretAsUInt64(substring(MD5({id: String}), 9, 8))'
    """
    types = tuple((name, _type_of(value)) for name, value in parameters.items())
    values = {
        name: time_parameter(value) if isinstance(value, datetime) else value for name, value in parameters.items()
    }
    return _translated(sql, types), values


def stored_time(moment: datetime) -> datetime:
    """Returns the nearest time that a column can represent.

    >>> str(stored_time(datetime.min))
    '1900-01-01 00:00:00'
    """
    return min(max(moment, EARLIEST), LATEST)


def time_parameter(moment: datetime) -> str:
    """Returns a time as ClickHouse takes it for a parameter of the type `TIME`.

    >>> time_parameter(datetime(2026, 1, 31, 12))
    '2026-01-31 12:00:00.000000'
    """
    return stored_time(moment).strftime("%Y-%m-%d %H:%M:%S.%f")


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
        case exp.Anonymous() if node.name.lower() == "epoch_us":
            return exp.func("toUnixTimestamp64Micro", *node.expressions)
        case exp.Anonymous() if node.name.lower() == "md5_number_lower":
            # SQLGlot writes a function that it knows, as `MD5`, in its own way.
            half = _call("substring", _call("MD5", *node.expressions), exp.Literal.number(9), exp.Literal.number(8))
            return _call("reinterpretAsUInt64", half)
        case exp.Contains():
            # A skip index knows what can be LIKE a text, and nothing of POSITION. ClickHouse computes the pattern once.
            escaped = _call("replaceRegexpAll", node.expression, _text(r"([%_\\])"), _text(r"\\\1"))
            return _call("like", node.this.transform(_with_functions), _call("concat", _text("%"), escaped, _text("%")))
        case exp.Lower():
            # ClickHouse's `lower` knows the letters of ASCII only. The indexes have this expression.
            return _call("lowerUTF8", _call("ifNull", node.this, _text("")))
        case exp.LogicalOr():
            return exp.func("max", node.this)
        case exp.Variance():
            # ClickHouse's varSamp subtracts two sums, which loses digits.
            return _call("varSampStable", node.this)
    return node


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _text(value: str) -> exp.Expr:
    return exp.Literal.string(value)


def _type_of(value: object) -> str:
    return TIME if isinstance(value, datetime) else _TYPES[type(value)]
