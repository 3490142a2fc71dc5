"""Window functions: complete orders where ties matter, written ones where peers do, layers, frames, errors."""

from __future__ import annotations

import pytest

from sweeparea.cql.text.errors import CqlError
from sweeparea.operators.nodes import Aggregate, Analytic, Project, Select
from tests.cql.readable import Readable
from tests.cql.schemas import plan, tree

WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
CALLS = {
    "row_number() OVER (PARTITION BY b ORDER BY x DESC)": (
        "ROW_NUMBER() OVER (PARTITION BY b ORDER BY x DESC, a, b)",
        "int",
    ),
    "rank() OVER (ORDER BY x)": ("RANK() OVER (ORDER BY x)", "int"),
    "dense_rank() OVER (ORDER BY x)": ("DENSE_RANK() OVER (ORDER BY x)", "int"),
    "percent_rank() OVER (ORDER BY x)": ("PERCENT_RANK() OVER (ORDER BY x)", "double"),
    "cume_dist() OVER (ORDER BY x)": ("CUME_DIST() OVER (ORDER BY x)", "double"),
    "ntile(4) OVER (ORDER BY x)": ("NTILE(4) OVER (ORDER BY x, a, b)", "int"),
    "lag(a) OVER (ORDER BY x)": ("LAG(a) OVER (ORDER BY x, a, b)", "int"),
    "lead(a, 2, 0) IGNORE NULLS OVER (ORDER BY x)": ("LEAD(a, 2, 0) IGNORE NULLS OVER (ORDER BY x, a, b)", "int"),
    "sum(x) OVER ()": ("SUM(x) OVER ()", "double"),
    "sum(x) OVER (ORDER BY a)": ("SUM(x) OVER (ORDER BY a)", "double"),
    "count(*) OVER (PARTITION BY a)": ("COUNT() OVER (PARTITION BY a)", "bigint"),
    "sum(x) FILTER (WHERE a > 1) OVER (PARTITION BY b)": ("SUM(x) FILTER a > 1 OVER (PARTITION BY b)", "double"),
    "sum(x) OVER (ORDER BY a ROWS 2 PRECEDING)": (
        "SUM(x) OVER (ORDER BY a, b, x ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
        "double",
    ),
    "sum(x) OVER (ORDER BY a RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)": (
        "SUM(x) OVER (ORDER BY a RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
        "double",
    ),
    "first_value(b) OVER (ORDER BY x)": (
        "FIRST(b) OVER (ORDER BY x, a, b ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
        "string",
    ),
    "last_value(b) OVER (PARTITION BY a)": (f"LAST(b) OVER (PARTITION BY a ORDER BY a, b, x {WHOLE})", "string"),
    "nth_value(b, 2) OVER (ORDER BY x ROWS UNBOUNDED PRECEDING)": (
        "NTH_VALUE(b, 2) OVER (ORDER BY x, a, b ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
        "string",
    ),
    "collect_list(b) OVER (PARTITION BY a)": (
        f"COLLECT_LIST(b) OVER (PARTITION BY a ORDER BY a, b, x {WHOLE})",
        "array<string>",
    ),
    "listagg(b, ',') WITHIN GROUP (ORDER BY x DESC) OVER (PARTITION BY a)": (
        f"LISTAGG(b, ',') OVER (PARTITION BY a ORDER BY x DESC, a, b {WHOLE})",
        "string",
    ),
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY x) OVER (PARTITION BY a)": (
        "PERCENTILE_CONT(x, 0.5) OVER (PARTITION BY a)",
        "double",
    ),
    "some(a > 1) OVER (PARTITION BY b)": ("MAX(a > 1) OVER (PARTITION BY b)", "boolean"),
}


@pytest.mark.parametrize("text", CALLS)
def test_a_call(text: str) -> None:
    bound = Readable(plan(f"SELECT {text} AS z FROM S [Now]"))
    assert (bound.overs(), bound.types) == ([[CALLS[text][0]]], [CALLS[text][1]])


NUMBER = "ROW_NUMBER() OVER (ORDER BY x, a, b)"
LAYERS = {
    "last_value(b) OVER (ORDER BY x)": "MAX_BY(b, row_number) OVER (ORDER BY x)",
    "last_value(b) IGNORE NULLS OVER (ORDER BY x)": "MAX_BY(b, IF((b) IS NULL, NULL, row_number)) OVER (ORDER BY x)",
    "first_value(b) OVER (ORDER BY x RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)": "MIN_BY(b, row_number) OVER (ORDER "
    "BY x RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "collect_list(b) OVER (ORDER BY x)": "COLLECT_LIST(IF((b) IS NULL, NULL, struct(row_number AS n, (b) AS v))) OVER "
    "(ORDER BY x)",
    "max_by(b, a) OVER (ORDER BY x)": "MAX_BY(b, IF((a) IS NULL, NULL, struct((a) AS y, -row_number AS n))) OVER "
    "(ORDER BY x)",
}


@pytest.mark.parametrize("text", LAYERS)
def test_functions_of_the_order_over_peers_go_by_a_row_number(text: str) -> None:
    bound = Readable(plan(f"SELECT {text} AS z FROM S [Now]"))
    assert bound.overs() == [[NUMBER], [LAYERS[text]]]


def test_an_instant_orders_last_and_only_where_it_is_read() -> None:
    assert Readable(plan("SELECT ts AS t, row_number() OVER (ORDER BY a) AS r FROM S")).overs() == [
        ["ROW_NUMBER() OVER (ORDER BY a, b, x, ts)"]
    ]
    assert Readable(plan("SELECT row_number() OVER (ORDER BY a) AS r FROM S")).overs() == [
        ["ROW_NUMBER() OVER (ORDER BY a, b, x)"]
    ]


def test_over_groups() -> None:
    bound = plan(
        "SELECT a, sum(sum(x)) OVER (ORDER BY a) AS c, row_number() OVER (ORDER BY sum(x)) AS r FROM S GROUP BY a"
    )
    assert Readable(bound).overs() == [["SUM(sum(x)) OVER (ORDER BY a)", "ROW_NUMBER() OVER (ORDER BY sum(x), a)"]]
    assert tree(bound.root) == "Project(Analytic(Aggregate(Window(StreamScan))))"


def test_the_order_of_clauses() -> None:
    bound = plan(
        "SELECT b, rank() OVER w AS r FROM S WHERE a > 1 GROUP BY b HAVING count(*) > 1 "
        "WINDOW w AS (ORDER BY sum(x)) QUALIFY r < 3"
    )
    kinds = [type(n) for n in reversed(list(bound.root.walk()))]
    assert kinds[:5] == [Project, Select, Analytic, Select, Aggregate]


def test_named_windows() -> None:
    bound = Readable(
        plan(
            "SELECT sum(x) OVER w AS s, max(x) OVER (v ORDER BY b) AS m, count(a) OVER v AS c FROM S "
            "WINDOW w AS (v ORDER BY a), v AS (PARTITION BY b)"
        )
    )
    assert bound.overs() == [
        [
            "SUM(x) OVER (PARTITION BY b ORDER BY a)",
            "MAX(x) OVER (PARTITION BY b ORDER BY b)",
            "COUNT(a) OVER (PARTITION BY b)",
        ]
    ]


def test_equal_calls_are_one() -> None:
    bound = Readable(plan("SELECT rank() OVER (ORDER BY a) AS r, rank() OVER ( ORDER BY a ) + 1 AS s FROM S"))
    assert bound.overs() == [["RANK() OVER (ORDER BY a)"]]


WRONG = {
    "row_number()": "TypeError: ROW_NUMBER needs OVER. Write ROW_NUMBER(..) OVER (PARTITION BY a ORDER BY b).",
    "row_number() OVER ()": "TypeError: ROW_NUMBER needs ORDER BY in OVER. Write ROW_NUMBER(..) OVER (PARTITION BY a "
    "ORDER BY b).",
    "rank() OVER (ORDER BY a ROWS 1 PRECEDING)": "TypeError: RANK takes no frame: it looks at the whole partition. "
    "Leave it out.",
    "rank(a) OVER (ORDER BY a)": "TypeError: RANK takes no argument, found 1. Write RANK().",
    "abs(a) OVER (ORDER BY a)": "TypeError: abs is neither a window function nor an aggregate, so it takes no OVER. "
    "Leave OVER out.",
    "sum(DISTINCT a) OVER (ORDER BY a)": "RefusedError: SUM(DISTINCT ..) OVER is not offered: Spark SQL has no "
    "DISTINCT in window functions. Aggregate in a subquery with GROUP BY, and join it.",
    "sum(a) OVER w": "BindError: there is no window w. Define it: WINDOW w AS (PARTITION BY .. ORDER BY ..).",
    "sum(sum(a) OVER ()) OVER ()": "BindError: the window function SUM cannot stand in the argument of SUM. Compute it "
    "in a subquery, or filter by it with QUALIFY.",
    "lag(a, b) OVER (ORDER BY a)": "TypeError: the offset of LAG must be a constant whole number, found b. "
    "Write a number.",
    "ntile(0) OVER (ORDER BY a)": "TypeError: NTILE counts from 1. Write a positive number.",
    "sum(a) OVER (ORDER BY a ROWS BETWEEN CURRENT ROW AND 1 PRECEDING)": "TypeError: the frame ends before it starts: "
    "CURRENT ROW comes after 1 PRECEDING. Write the earlier edge first.",
    "sum(a) OVER (ORDER BY a ROWS x PRECEDING)": "TypeError: an edge of a frame must be a constant, found x. Write a "
    "number or an INTERVAL.",
    "sum(a) OVER (ORDER BY b RANGE 1 PRECEDING)": "TypeError: a RANGE frame cannot add an offset to STRING. Order by a "
    "number or a time, or count ROWS.",
    "sum(a) OVER (ORDER BY a, b RANGE 1 PRECEDING)": "TypeError: a RANGE frame with an offset needs exactly one "
    "expression in ORDER BY. Order by one expression, or count ROWS.",
    "sum(a) OVER (RANGE 1 PRECEDING)": "TypeError: a RANGE frame needs ORDER BY in OVER. Add ORDER BY, or write ROWS.",
    "sum(a) OVER (ORDER BY a ROWS BETWEEN 1 AND CURRENT ROW)": "ParseError: an edge of a frame says PRECEDING or "
    "FOLLOWING. Write 1 PRECEDING, or CURRENT ROW.",
    "mode(a) IGNORE NULLS OVER ()": "TypeError: MODE does not take IGNORE NULLS. FIRST, LAST, ANY_VALUE, NTH_VALUE, "
    "LAG and LEAD do.",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY x) OVER (ORDER BY a)": "TypeError: PERCENTILE_CONT with WITHIN GROUP "
    "takes neither ORDER BY nor a frame in OVER. Write OVER (PARTITION BY ..).",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_told(text: str) -> None:
    with pytest.raises(CqlError) as caught:
        plan(f"SELECT {text} AS z FROM S", filename="q")
    assert str(caught.value).splitlines()[0].split(": ", 1)[1] == WRONG[text]


@pytest.mark.parametrize("where", ["WHERE rank() OVER (ORDER BY a) = 1", "HAVING rank() OVER (ORDER BY a) = 1"])
def test_places_without_window_functions(where: str) -> None:
    with pytest.raises(CqlError) as caught:
        plan(f"SELECT 1 AS o FROM S {where}")
    assert caught.value.message.startswith("the window function RANK cannot stand in")


def test_a_window_fixes_what_it_says() -> None:
    with pytest.raises(CqlError) as caught:
        plan("SELECT sum(a) OVER (w ORDER BY x) AS s FROM S WINDOW w AS (ORDER BY a)")
    assert caught.value.message == "OVER says again what window w fixes already"
