"""Conditions of joins, taken apart into equalities and what reads one side: only where that changes nothing."""

from __future__ import annotations

import pytest

from sweeparea.operators.sql.conditions import conjunction, take_apart
from sweeparea.operators.sql.expressions import Expr
from tests.operators.matches import ids


def apart(text: str):
    return take_apart(Expr(text, columns=ids(text)), "abx", "cdy")


@pytest.mark.parametrize(
    ("text", "equalities", "left", "right", "rest"),
    [
        ("(a = c) AND (d <=> (b + 1))", [("a", "c"), ("b + 1", "d")], [], [], []),
        ("((a = c AND b > 1) AND (d IS NULL))", [("a", "c")], ["b > 1"], ["d IS NULL"], []),
        ("`a` = `c` AND `d` > 1", [("`a`", "`c`")], [], ["`d` > 1"], []),
        ("a = c OR b = d", [], [], [], ["a = c OR b = d"]),
        ("a BETWEEN c AND d AND b = c", [("b", "c")], [], [], ["a BETWEEN c AND d"]),
        (
            "CASE WHEN a = 1 AND c = 2 THEN b ELSE 0 END = d",
            [],
            [],
            [],
            ["CASE WHEN a = 1 AND c = 2 THEN b ELSE 0 END = d"],
        ),
        ("NOT a = c AND b < d", [], [], [], ["NOT a = c", "b < d"]),
        ("a = ' AND ' || c", [("a", "' AND ' || c")], [], [], []),
        ("a + c = d", [], [], [], ["a + c = d"]),
        ("TRUE AND a = c", [("a", "c")], [], ["TRUE"], []),
        ("a = c = b", [], [], [], ["a = c = b"]),
        ("a = c IS NULL", [], [], [], ["a = c IS NULL"]),
    ],
)
def test_a_condition_is_cut_where_that_changes_nothing(text, equalities, left, right, rest):
    (found,) = apart(text)
    assert [(e.left.sql, e.right.sql) for e in found.equalities] == equalities
    assert [[p.sql for p in part] for part in (found.left, found.right, found.rest)] == [left, right, rest]


def test_the_condition_of_not_in_has_three_alternatives():
    found = apart("coalesce(x = y, TRUE) AND a = c")
    shown = [conjunction([*c.left, *c.right]) for c in found]
    assert [[(e.left.sql, e.right.sql) for e in c.equalities] for c in found] == [
        [("a", "c"), ("x", "y")], [("a", "c")], [("a", "c")],
    ]  # fmt: skip
    assert [s and s.sql for s in shown] == [None, "((x) IS NULL)", "((y) IS NULL)"]


@pytest.mark.parametrize("text", ["coalesce(x = y, FALSE)", "coalesce(x <=> y, TRUE)", "coalesce(x < y, TRUE)",
                                  "coalesce(x = y, NULL, TRUE)", "coalesce(x = y, TRUE) = (a = c)"])  # fmt: skip
def test_what_only_looks_like_it_stays_whole(text):
    (found,) = apart(text)
    assert [p.sql for p in found.rest] == [text]


def test_a_column_that_is_not_found_leaves_the_condition_whole():
    condition = Expr("a = c AND hidden(1)", columns=frozenset("abc"))
    assert take_apart(condition, "ab", "c")[0].rest == (condition,)
