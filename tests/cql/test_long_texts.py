"""Texts that are long or deep: they are planned in time that grows with their length, and messages stay short."""

from __future__ import annotations

import re
import sys
import threading

import pytest

from sweeparea.cql.declarations.catalog import Catalog
from sweeparea.cql.rewrites.conditions import all_of, conjunction
from sweeparea.cql.syntax.parser import parse
from sweeparea.cql.syntax.trees import table_names
from sweeparea.infra.deep_stack import FRAMES, deep
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.nodes import Project, Select
from sweeparea.operators.plan.plan_identity import state_identity
from sweeparea.operators.sql import sql_text
from sweeparea.operators.sql.expressions import Expr
from tests.cql.schemas import plan

LEVELS = 500
NUMBERS = range(1_000)

LONG = {
    "OR": "SELECT a FROM S WHERE " + " OR ".join(f"a = {i}" for i in NUMBERS),
    "AND": "SELECT a FROM S WHERE " + " AND ".join(f"a <> {i}" for i in NUMBERS),
    "AND in ON": "SELECT S.a FROM S [Range 5], T [Range 5] WHERE "
    + " AND ".join(f"S.a <> T.a + {i} AND S.a <> {i} AND T.a <> {i}" for i in range(300)),
    "OR over keys": "SELECT a + 1 AS k, COUNT(*) AS n FROM S [Now] GROUP BY a + 1 HAVING "
    + " OR ".join(f"a + 1 = {i}" for i in NUMBERS),
    "||": "SELECT " + " || ".join("b" for _ in NUMBERS) + " AS k FROM S",
    "+": "SELECT " + " + ".join(f"x * {i}" for i in range(1_000)) + " AS k FROM S",
    "IN": "SELECT a FROM S WHERE a IN (" + ", ".join(map(str, NUMBERS)) + ")",
    "WHEN": "SELECT CASE " + " ".join(f"WHEN a = {i} THEN {i}" for i in range(1_000)) + " END AS k FROM S",
    "UNION ALL": " UNION ALL ".join(f"SELECT a + {i} AS k FROM S" for i in range(200)),
    "WITH": "WITH w0 AS (SELECT a FROM S), "
    + ", ".join(f"w{i} AS (SELECT a FROM w{i - 1})" for i in range(1, 200))
    + " SELECT a FROM w199",
}
DEEP = {
    "parentheses": "SELECT " + "(" * LEVELS + "a" + ")" * LEVELS + " AS k FROM S",
    "calls": "SELECT " + "abs(" * LEVELS + "a" + ")" * LEVELS + " AS k FROM S",
    "CASE": "SELECT " + "CASE WHEN a = 1 THEN 1 ELSE " * LEVELS + "a" + " END" * LEVELS + " AS k FROM S",
    "NOT": "SELECT a FROM S WHERE " + "NOT (" * LEVELS + "a = 1" + ")" * LEVELS,
    "AND in OR": "SELECT a FROM S WHERE " + "(a = 1 AND (a = 2 OR " * (LEVELS // 2) + "TRUE" + "))" * (LEVELS // 2),
    "subqueries": "SELECT a FROM " + "(SELECT a FROM " * LEVELS + "S" + ")" * LEVELS,
}


@pytest.mark.parametrize("text", [*LONG.values(), *DEEP.values()], ids=[*LONG, *DEEP])
def test_long_and_deep_texts_are_planned(text: str) -> None:
    assert state_identity(plan(text))


@pytest.mark.parametrize("text", [*LONG.values(), *DEEP.values()], ids=[*LONG, *DEEP])
def test_what_long_and_deep_queries_of_a_file_read_is_found(text: str) -> None:
    catalog = Catalog.of(parse(f"CREATE CONTINUOUS QUERY q AS {text}", "f.cql"))
    assert set(table_names(catalog.query("q").select)) == ({"S", "T"} if "T.a" in text else {"S"})


def test_a_plan_does_not_depend_on_the_stack_below() -> None:
    found: list[str] = []

    def below(calls: int) -> None:
        if calls:
            below(calls - 1)
        else:
            found.append(state_identity(plan(DEEP["AND in OR"])))

    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=below, args=(500,))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert found == [state_identity(plan(DEEP["AND in OR"]))]


def test_the_recursion_limit_is_as_before_outside() -> None:
    before = sys.getrecursionlimit()
    assert deep(sys.getrecursionlimit)() == FRAMES
    assert sys.getrecursionlimit() == before
    with pytest.raises(ZeroDivisionError):
        deep(lambda: 1 / 0)()
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize("count", [1, 2, 3, 40])
def test_conditions_put_together_at_once_or_one_by_one_are_one_text(count: int) -> None:
    conditions = [Expr(f"`c{i}` = 1 OR {i}", f"a{i} = 1 OR {i}", frozenset({f"c{i}"})) for i in range(count)]
    one_by_one = None
    for condition in conditions:
        one_by_one = conjunction(one_by_one, condition)
    assert all_of(conditions) == one_by_one
    assert all_of([]) is None


def test_a_nested_conjunction_is_cut_with_its_tokens_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found, texts = sql_text.tokens, []
    monkeypatch.setattr(sql_text, "tokens", lambda sql: texts.append(sql) or found(sql))
    cut = sql_text.parts.__wrapped__("(" * 300 + "a <> 0" + "".join(f") AND (b <> {i})" for i in range(299)) + ")")
    assert cut == ("a <> 0", *(f"b <> {i}" for i in range(299)))
    assert sql_text.bare.__wrapped__("(" * 300 + " a " + ")" * 300) == "a"
    assert len(texts) == 2


def test_a_long_conjunction_stands_side_by_side() -> None:
    root = plan(LONG["AND"]).root
    (condition,) = [node.condition.sql for node in root.walk() if isinstance(node, Select)]
    assert "((" not in condition
    assert condition.count(" AND ") == len(NUMBERS) - 1


OPERANDS = ["b", "a", "'x'", "(a + 1)", "upper(b)", "x", "CASE WHEN a = 1 THEN b END", "NULL"]
CHAIN = " || ".join(OPERANDS * 30)


def _expression(text: str) -> str:
    """What a column z is computed by, with the ids of columns as one."""
    root = plan(f"SELECT {text} AS z FROM S [Now]").root
    (found,) = [e.sql for node in root.walk() if isinstance(node, Project) for c, e in node.outputs if c.label == "z"]
    return re.sub(r"`c\d+`", "`c`", found)


def test_a_long_chain_of_strings_is_one_call() -> None:
    operands = [*(_expression(each) for each in OPERANDS[:-1]), "NULL"]
    one = f"concat({', '.join(operands * 30)})"
    assert _expression(CHAIN) == one
    assert _expression(f"(({CHAIN}))") == f"(({one}))"
    assert _expression(f"upper({CHAIN}) = 'X'") == f"upper({one}) = 'X'"
    assert _expression(f"({CHAIN}) || (({CHAIN} || a) || 'y')") == f"{one[:-1]}, {one[7:-1]}, `c`, 'y')"
    assert _expression(" || ".join(["b"] * 200)) == f"concat({', '.join(['`c`'] * 200)})"


@pytest.mark.parametrize(
    "text",
    [
        " || ".join(["b"] * 199),
        f"{CHAIN} || X'01'",
        " || ".join(["X'01'"] * 300),
        " || ".join(["array(a)"] * 300),
        f"{CHAIN} || a + 1",
        f"a * {CHAIN}",
        f"1 + {CHAIN}",
        f"a & {CHAIN}",
        f"{CHAIN} & a",
        f"{CHAIN} || transform(array(a), q -> q)[0]",
    ],
    ids=[
        "short",
        "BINARY",
        "BINARY alone",
        "ARRAY",
        "+ behind",
        "* before",
        "+ before",
        "& before",
        "& behind",
        "unknown",
    ],
)
def test_other_chains_are_run_as_they_are_written(text: str) -> None:
    assert "concat" not in _expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM S WHERE " + " OR ".join(f"a = {i}" for i in range(1_100)) + " OR nosuch = 1",
        "SELECT a FROM S WHERE nosuch = 1 OR " + " OR ".join(f"a = {i}" for i in range(1_100)),
        "SELECT a FROM S WHERE " + " + ".join(f"a * {i}" for i in range(1_100)),
        "SELECT " + "(" * 1_100 + "a" + ")" * 1_100 + " AS k FROM S",
    ],
    ids=["at the end", "at the beginning", "in the message", "nesting"],
)
def test_a_message_shows_a_part_of_a_long_text(text: str) -> None:
    with pytest.raises(SweepAreaError) as caught:
        plan(text)
    said = str(caught.value)
    assert len(said) < 1_600
    first, line, caret = said.splitlines()
    assert len(line) < 220
    marked = line[caret.index("^") :]
    assert first.startswith("<query>:1:")
    assert text.startswith(marked.removesuffix(" .."), int(first.split(":")[2]) - 1)


def test_nesting_that_is_too_deep_says_how_deep_it_may_be() -> None:
    with pytest.raises(SweepAreaError, match=r"<query>:1:1008: ParseError: .* 1,100 inside one another, .*1,000 may"):
        plan("SELECT " + "(" * 1_100 + "a" + ")" * 1_100 + " AS k FROM S")
