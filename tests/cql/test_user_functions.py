"""User-defined functions and aggregates in queries."""

from __future__ import annotations

import pytest

from sweeparea.cql.binding.binder import bind_select
from sweeparea.cql.functions.user_functions import register
from sweeparea.cql.syntax.parser import parse_text
from sweeparea.cql.syntax.statements import CreateFunction
from sweeparea.cql.text.errors import BindError, CqlError
from sweeparea.operators.plan import lowering
from sweeparea.operators.plan.plan import Plan, UserFunction, UserKind
from tests.cql.readable import Readable
from tests.cql.schemas import TICKS

FUNCTIONS = [
    UserFunction("celsius", UserKind.FUNCTION, "m:f", "double"),
    UserFunction("Spread", UserKind.AGGREGATE, "m:g", "decimal(10,2)"),
    UserFunction("hold_for", UserKind.WINDOW, "m:w", "WK"),
]


def bind(text: str) -> Plan:
    return bind_select(text, TICKS, functions=FUNCTIONS, filename="q")


def test_a_function_is_called_by_its_name_and_has_its_type() -> None:
    bound = bind("SELECT CELSIUS(x) + 1 AS z, celsius(x) AS w FROM S [Now] WHERE celsius(x) > 3")
    assert [c.type for c in bound.root.columns] == ["double", "double"]
    assert "CELSIUS(`c2`) + 1" in [e.sql for e in bound.root.expressions()]
    assert bound.functions == (FUNCTIONS[0],)
    assert bind("SELECT a FROM S [Now]").functions == ()


def test_an_aggregate_goes_where_aggregates_go() -> None:
    bound = Readable(bind("SELECT a, spread(DISTINCT x, b) FILTER (WHERE a > 1) AS z FROM S [Now] GROUP BY a"))
    assert bound.aggregates() == ["Spread(DISTINCT x, b) ORDER BY x, b FILTER a > 1"]
    assert bound.types == ["int", "decimal(10,2)"]
    assert bound.plan.functions == (FUNCTIONS[1],)
    assert Readable(bind("SELECT spread(x) OVER (PARTITION BY a) AS z FROM S [Now]")).overs() == [
        ["Spread(x) OVER (PARTITION BY a)"]
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SELECT spread(x) AS z FROM S WHERE spread(x) > 1", "the aggregate SPREAD cannot stand in WHERE"),
        ("SELECT spread() AS z FROM S", "the aggregate Spread needs an argument"),
        ("SELECT a, celsius(x) AS z FROM S GROUP BY a", "column x is neither grouped nor inside an aggregate"),
        ("SELECT celsius(x) OVER () AS z FROM S", "celsius is neither a window function nor an aggregate"),
        ("SELECT kelvin(x) AS z FROM S", "there is no function kelvin"),
    ],
)
def test_what_is_told(text: str, told: str) -> None:
    with pytest.raises(CqlError) as caught:
        bind(text)
    assert caught.value.message.startswith(told)
    assert caught.value.place is not None


def created(text: str) -> CreateFunction:
    [statement] = parse_text(text, "f.cql")
    assert isinstance(statement, CreateFunction)
    return statement


def test_registering_loads_the_object() -> None:
    statement = created("CREATE FUNCTION celsius AS 'tests.operators.user_samples:celsius'")
    assert register(statement) == UserFunction("celsius", UserKind.FUNCTION, statement.target, "double")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("CREATE FUNCTION upper AS 'm:f'", "function upper has the name of a function of Spark"),
        ("CREATE AGGREGATE sum AS 'm:f'", "aggregate sum has the name of a function of Spark"),
        ("CREATE FUNCTION window_start AS 'm:f'", "function window_start has the name of a function of the language"),
        ("CREATE FUNCTION f AS 'no_such_module:f'", "function f: There is no Python module no_such_module"),
    ],
)
def test_what_registering_tells(text: str, told: str) -> None:
    with pytest.raises(BindError) as caught:
        register(created(text))
    assert caught.value.message.startswith(told)
    assert str(caught.value).startswith("f.cql:1:1: BindError")


def _registered(name: str) -> UserFunction:
    return register(created(f"CREATE AGGREGATE {name} AS 'tests.cql.user_states:{name}'"))


def test_an_aggregate_with_a_state_is_incremental_where_types_are_known() -> None:
    functions = [_registered("summed"), _registered("rounded")]
    settings = {"functions": functions, "filename": "q"}
    bound = bind_select("SELECT a, summed(a) AS z FROM S [Now] GROUP BY a", TICKS, **settings)
    assert not any(map(lowering.expansion, bound.root.walk()))
    bound = bind_select("SELECT a, summed(a) OVER (ORDER BY b) AS z FROM S [Now]", TICKS, **settings)
    assert not any(map(lowering.expansion, bound.root.walk()))
    with pytest.raises(BindError) as caught:
        bind_select("SELECT rounded(x) AS z FROM S [Now]", TICKS, **settings)
    assert caught.value.message.startswith("aggregate rounded is not what its state keeps: its state gives")
    assert caught.value.place is not None
