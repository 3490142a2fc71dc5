"""Which expectations of Great Expectations can be declared, with their arguments: ``cql/functions/expectations.json``.

``python -m sweeparea.quality.expectation_list`` writes the file anew after a new version of Great Expectations; a test
compares it. The language reads the file, since importing Great Expectations takes seconds.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sweeparea.cql.functions import expectations as known

OF_SQL = "it runs a SQL text of its own, through a view that other slices share"
ELSEWHERE = "it compares with a table or a data source of Great Expectations' own"
NOT_HERE = "Great Expectations computes it in a SQL database only"
REFUSED = {
    "unexpected_rows_expectation": OF_SQL,
    "expect_query_results_to_match_comparison": ELSEWHERE,
    "expect_table_row_count_to_equal_other_table": ELSEWHERE,
}
"""Those that no table alone decides, with the reason."""
NO_ARGUMENTS = ("batch_id", "row_condition", "condition_parser", "library_metadata")
"""Arguments that are not offered: rows are chosen by a condition of Spark SQL, not by one of an engine's own."""


def listed() -> dict[str, Any]:
    """What the file holds, from the Great Expectations that is installed."""
    from sweeparea.quality.verdict import preload

    preload()
    import great_expectations as gx
    from great_expectations.expectations.expectation import Expectation
    from great_expectations.expectations.registry import (
        get_expectation_impl,
        list_registered_expectation_implementations,
    )

    base: Any = Expectation
    common = {*base.__fields__, *NO_ARGUMENTS}
    found: dict[str, Any] = {}
    refused = dict(REFUSED)
    for name in sorted(list_registered_expectation_implementations()):
        implementation: Any = get_expectation_impl(name)
        if not implementation.__module__.startswith("great_expectations.") or name in refused:
            continue
        if not _has_pandas(implementation) and "like_pattern" not in name:  # these are asked as regular expressions
            refused[name] = NOT_HERE
            continue
        found[name] = {
            argument: {"kind": _kind(argument, name, field), **({"required": True} if field.required else {})}
            for argument, field in implementation.__fields__.items()
            if argument not in common
        }
    return {"version": gx.__version__, "expectations": found, "refused": dict(sorted(refused.items()))}


def _has_pandas(implementation: Any) -> bool:
    """Whether all that an expectation needs is computed over pandas."""
    from great_expectations.expectations.registry import _registered_metrics  # pyright: ignore[reportPrivateUsage]

    of_rows = getattr(implementation, "map_metric", None)
    needed = (f"{of_rows}.condition",) if of_rows else getattr(implementation, "metric_dependencies", ())
    return all(
        "PandasExecutionEngine" in (_registered_metrics.get(metric) or {}).get("providers", {}) for metric in needed
    )


def _kind(argument: str, expectation: str, field: Any) -> str:
    """What may be written for an argument, as ``cql/functions/expectations.py`` names it."""
    kind = str(field.outer_type_).replace("typing.", "")
    if argument in ("column", "column_A", "column_B"):
        return known.COLUMN
    if argument == "column_list" and not expectation.startswith("expect_table_"):
        return known.COLUMNS
    literal = re.search(r"Literal\[([^\]]*)\]", kind)
    if literal:
        return known.CHOICE + "|".join(re.findall(r"'([^']*)'", literal[1]))
    if "Tuple" in kind or argument in ("quantile_ranges", "partition_object", "json_schema"):
        return known.JSON
    if re.search(r"\b(List|list|set|Sequence)\b", kind):
        return known.LIST
    if "bool" in kind:
        return known.BOOLEAN
    if "date" in kind:
        return known.VALUE
    if re.search(r"\bint\b|Integer|ConstrainedInt", kind):
        return known.NUMBER
    if re.search(r"\bfloat\b|Float", kind):
        return known.NUMBER
    return known.JSON if kind == "<class 'dict'>" else known.TEXT


def write(path: Path | None = None) -> None:
    """Writes the file."""
    text = json.dumps(listed(), indent=1, sort_keys=True)
    (path or known.PATH).write_text(text + "\n")


if __name__ == "__main__":
    write()
