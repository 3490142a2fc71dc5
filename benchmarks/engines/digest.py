"""A bag of rows in short: the sum of the digests of its rows, as an SQL expression of DuckDB or of Flink.

A row is the text of its columns with ``|`` between, its digest the first eleven digits of the text's MD5, where a to f
count as 0 to 5. Equal bags have equal sums; bags that differ have others but for one case in some 10^10.
"""

from __future__ import annotations

DUCKDB = {
    "integer": "CAST({0} AS VARCHAR)",
    "text": "CAST({0} AS VARCHAR)",
    "instant": "strftime(make_timestamp(epoch_us({0})), '%Y-%m-%d %H:%M:%S.%g')",
    "decimal": "CAST(CAST({0} AS DECIMAL(30, 3)) AS VARCHAR)",
    "fraction": "CAST(CAST(floor({0} * 1000) AS BIGINT) AS VARCHAR)",
}
FLINK = {
    "integer": "CAST({0} AS STRING)",
    "text": "{0}",
    "instant": "CAST(CAST({0} AS TIMESTAMP(3)) AS STRING)",
    "decimal": "CAST(CAST({0} AS DECIMAL(30, 3)) AS STRING)",
    "fraction": "CAST(CAST(FLOOR({0} * 1000) AS BIGINT) AS STRING)",
}


def duckdb(columns: list[tuple[str, str]]) -> str:
    """``COUNT(*), SUM(..)`` over rows with these columns."""
    return _summed(columns, DUCKDB, '"', "translate(substr(md5({0}), 1, 11), 'abcdef', '012345')")


def flink(columns: list[tuple[str, str]]) -> str:
    """The same for Flink."""
    return _summed(columns, FLINK, "`", "TRANSLATE(SUBSTRING(MD5({0}), 1, 11), 'abcdef', '012345')")


def _summed(columns: list[tuple[str, str]], kinds: dict[str, str], quote: str, digits: str) -> str:
    texts = [f"COALESCE({kinds[kind].format(quote + name + quote)}, 'NULL')" for name, kind in columns]
    row = texts[0] if len(texts) == 1 else f"CONCAT({', '.join(_between(texts))})"
    return f"COUNT(*), SUM(CAST({digits.format(row)} AS BIGINT))"


def _between(texts: list[str]) -> list[str]:
    return [part for text in texts for part in ("'|'", text)][1:]
