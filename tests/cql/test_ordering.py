"""ORDER BY, LIMIT and OFFSET as TopK: what keys see, how ties end, what is refused."""

from __future__ import annotations

import pytest

from sweeparea.cql.text.errors import CqlError
from sweeparea.operators.nodes import TopK
from tests.cql.readable import Readable
from tests.cql.schemas import nodes, plan, tree

TOPS = {
    "SELECT a, b FROM S [Now] ORDER BY b DESC LIMIT 3": "b DESC, a LIMIT 3 OFFSET 0",
    "SELECT a, b FROM S [Now] ORDER BY b DESC NULLS FIRST, a NULLS LAST LIMIT 3": "b DESC NULLS FIRST, a NULLS LAST "
    "LIMIT 3 OFFSET 0",
    "SELECT a AS k, b FROM S [Now] ORDER BY k, 2 LIMIT 3": "k, b LIMIT 3 OFFSET 0",
    "SELECT a, b FROM S [Now] ORDER BY ALL LIMIT 1": "a, b LIMIT 1 OFFSET 0",
    "SELECT a, b FROM S [Now] ORDER BY ALL DESC OFFSET 2": "a DESC, b DESC LIMIT None OFFSET 2",
    "SELECT b FROM S [Now] ORDER BY x LIMIT 3 OFFSET 1": "x, b LIMIT 3 OFFSET 1",
    "SELECT b FROM S [Now] ORDER BY a + x LIMIT 3": "a + x, b LIMIT 3 OFFSET 0",
    "SELECT a AS x FROM S [Now] ORDER BY x LIMIT 3": "x LIMIT 3 OFFSET 0",
    "SELECT A + 1 AS k FROM S [Now] ORDER BY a+1 LIMIT 3": "k LIMIT 3 OFFSET 0",
    "SELECT b, count(*) AS n FROM S [Now] GROUP BY b ORDER BY count(*) DESC, max(x) LIMIT 2": "n DESC, max(x), b LIMIT "
    "2 OFFSET 0",
    "SELECT DISTINCT a AS k, b FROM S [Now] ORDER BY k + 1, S.b LIMIT 2": "k + 1, b, k LIMIT 2 OFFSET 0",
    "SELECT a FROM S [Now] UNION ALL SELECT a FROM T [Now] ORDER BY a LIMIT 2": "a LIMIT 2 OFFSET 0",
    "(SELECT a, b FROM S [Now]) ORDER BY b LIMIT 2": "b, a LIMIT 2 OFFSET 0",
    "SELECT a FROM S [Now] ORDER BY a LIMIT 2 + 3": "a LIMIT 5 OFFSET 0",
    "SELECT a FROM S [Now] ORDER BY a FETCH FIRST 4 ROWS ONLY": "a LIMIT 4 OFFSET 0",
}


@pytest.mark.parametrize("text", TOPS)
def test_keys(text: str) -> None:
    bound = Readable(plan(text))
    assert bound.top() == TOPS[text]
    assert len({c.id for c in bound.plan.root.columns}) == len(bound.plan.root.columns)


def test_what_is_not_selected_is_left_out_above() -> None:
    bound = plan("SELECT b FROM S [Now] ORDER BY x LIMIT 3")
    assert tree(bound.root) == "Project(TopK(Project(Window(StreamScan))))"
    assert [c.label for c in bound.root.columns] == ["b"]


def test_in_a_subquery_and_under_a_stream() -> None:
    assert nodes(plan("SELECT a FROM (SELECT a FROM S [Now] ORDER BY a LIMIT 3) t WHERE a > 1").root, TopK)
    bound = plan("SELECT ISTREAM(a) FROM S [Now] ORDER BY a LIMIT 3")
    assert bound.stream == "istream"
    assert nodes(bound.root, TopK)


@pytest.mark.parametrize("text", ["SELECT a FROM S [Now] ORDER BY b", "SELECT a FROM S [Now] ORDER BY b LIMIT ALL"])
def test_order_alone_changes_nothing(text: str) -> None:
    bound = plan(text)
    assert not nodes(bound.root, TopK)
    assert "ORDER BY without LIMIT changes nothing: a relation has no order; sort where it is read" in bound.notes


WRONG = {
    "SELECT a FROM S LIMIT 3": "RefusedError: LIMIT without ORDER BY is refused: which rows it keeps would be left to "
    "chance. Say which rows are wanted with ORDER BY .. LIMIT.",
    "SELECT a FROM S UNION ALL SELECT a FROM T LIMIT 3": "RefusedError: LIMIT without ORDER BY is refused: which rows "
    "it keeps would be left to chance. Say which rows are wanted with ORDER BY .. LIMIT.",
    "SELECT a FROM S OFFSET 3": "RefusedError: OFFSET without ORDER BY is refused: which rows it keeps would be left "
    "to chance. Say which rows are wanted with ORDER BY .. OFFSET.",
    "SELECT a FROM S ORDER BY a LIMIT x": "TypeError: LIMIT must be a constant whole number. Write LIMIT 10.",
    "SELECT a FROM S ORDER BY a LIMIT 1.5": "TypeError: LIMIT must be a constant whole number. Write LIMIT 10.",
    "SELECT a FROM S ORDER BY a LIMIT -1": "TypeError: LIMIT cannot be negative, found -1. Write LIMIT 10.",
    "SELECT a FROM S ORDER BY 2 LIMIT 1": "BindError: ORDER BY 2 is no position in the select list. It has 1 column.",
    "SELECT a AS k, b AS k FROM S ORDER BY k LIMIT 1": "BindError: ORDER BY k is ambiguous: the select list has 2 "
    "columns of that name. Give them aliases of their own.",
    "SELECT DISTINCT a FROM S ORDER BY b LIMIT 1": "BindError: ORDER BY b is not in the select list, and DISTINCT "
    "leaves nothing else to order by. Add it to the select list.",
    "SELECT a FROM S GROUP BY a ORDER BY b LIMIT 1": "BindError: column b is neither grouped nor inside an aggregate. "
    "Add it to GROUP BY, or write MIN(b) or another aggregate of it.",
    "SELECT a FROM S ORDER BY map(a, b) LIMIT 1": "TypeError: ORDER BY cannot compare map(a, b), which is a MAP. Order "
    "by a part of it.",
    "ISTREAM(SELECT a FROM S) ORDER BY a LIMIT 1": "TypeError: ORDER BY and LIMIT need a relation, but the query "
    "before is a stream. Write them inside: ISTREAM(SELECT .. ORDER BY .. LIMIT ..).",
    "SELECT a FROM S SORT BY a": "RefusedError: SORT BY is not offered by this version. A relation has no "
    "order: leave it out, or write ORDER BY .. LIMIT.",
    "SELECT DISTINCT ON (a) b FROM S": "RefusedError: DISTINCT ON is not offered by this version. Filter by "
    "ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) with QUALIFY.",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_told(text: str) -> None:
    with pytest.raises(CqlError) as caught:
        plan(text, filename="q")
    assert str(caught.value).splitlines()[0].split(": ", 1)[1] == WRONG[text]
