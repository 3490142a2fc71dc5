"""What users of other systems write: understood where it can be exactly, else refused by name with the spelling to use
and its place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sweeparea.cql.binding.binder import bind, bind_select
from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind
from sweeparea.cql.declarations.canonical import declaration
from sweeparea.cql.declarations.differences import difference
from sweeparea.cql.printing.plan_printer import print_plan
from sweeparea.cql.syntax.parser import parse_text
from sweeparea.cql.syntax.statements import CreateQuery
from sweeparea.cql.text import keywords
from sweeparea.cql.text.errors import CqlError, CqlErrors, ParseError, RefusedError, TypeError_
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.plan_identity import result_identity
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from tests.cql.schemas import TICKS, TIMES, plan

INPUTS = {
    **TICKS,
    **TIMES,
    "fine": InputSchema("fine", SchemaKind.STREAM, (("k", "int"),), TimeDomain(TimeKind.TIMESTAMP, 1)),
}
STREAM = "CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t"


def root(text: str) -> Node:
    return bind_select(text, INPUTS).root


# -- understood --------------------------------------------------------------------------------------------------------

LENGTHS = {
    "2000 NANOSECONDS": "2 MICROSECONDS",
    "INTERVAL '3000' NANOSECOND": "3 MICROSECONDS",
    "INTERVAL '1000 nanoseconds'": "1 MICROSECOND",
    "5 * 60 SECONDS": "INTERVAL 300 SECONDS",
    "INTERVAL 5 * 60 SECONDS": "INTERVAL 300 SECONDS",
    "INTERVAL (5 * 60) SECONDS": "INTERVAL 300 SECONDS",
    "(2 + 3) HOURS": "5 HOURS",
    "5 * INTERVAL 60 SECONDS": "INTERVAL 5 MINUTES",
    "INTERVAL '60' SECOND * 5": "INTERVAL 5 MINUTES",
    "1 HOUR 5 MINUTES": "65 MINUTES",
    "1 HOUR + 5 MINUTES - 10 SECONDS": "3890 SECONDS",
    "2 * 1 HOUR + 30 MINUTES": "150 MINUTES",
    "1 HOUR / 4": "15 MINUTES",
    "1.5 * 2 HOURS": "3 HOURS",
    "-(-(2)) SECONDS": "2 SECONDS",
    "1 HOUR ON ts": "1 HOUR",
}
UNDERSTOOD = {
    **{f"SELECT k FROM fine [RANGE {a}]": f"SELECT k FROM fine [RANGE {b}]" for a, b in LENGTHS.items()},
    "SELECT k FROM fine [FROM DATE '2020-01-01' + INTERVAL 1 DAY]": "SELECT k FROM fine [FROM DATE '2020-01-02']",
    "SELECT a FROM S [RANGE 2 + 3 SLIDE 2 * 2 ANCHOR 7 - 6]": "SELECT a FROM S [RANGE 5 SLIDE 4 ANCHOR 1]",
    "SELECT a FROM S [ROWS 2 + 3 SLIDE 10 / 5]": "SELECT a FROM S [ROWS 5 SLIDE 2]",
    "SELECT a FROM S [PARTITION BY b ROWS (7 % 4) RANGE 7 DIV 2]": "SELECT a FROM S [PARTITION BY b ROWS 3 RANGE 3]",
    "SELECT a FROM S [HOPPING 2 * 5 SLIDE 10 / 2 ON S.ts]": "SELECT a FROM S [HOPPING 10 SLIDE 5]",
    "SELECT a FROM S ORDER BY a LIMIT 2 * 5 OFFSET 9 / 3": "SELECT a FROM S ORDER BY a LIMIT 10 OFFSET 3",
    "SELECT a, id FROM S, range(1 + 1, 2 * 3)": "SELECT a, id FROM S, range(2, 6)",
    "R UNION ALL q": "SELECT * FROM R UNION ALL SELECT * FROM q",
    "SELECT a, d FROM R UNION q ORDER BY a LIMIT 2": "SELECT a, d FROM R UNION SELECT * FROM q ORDER BY a LIMIT 2",
    "R EXCEPT Fixed INTERSECT R": "SELECT * FROM R EXCEPT SELECT * FROM Fixed INTERSECT SELECT * FROM R",
    "(R) MINUS (Fixed)": "SELECT * FROM R MINUS SELECT * FROM Fixed",
    "S [RANGE 5] UNION ALL S [ROWS 3]": "SELECT * FROM S [RANGE 5] UNION ALL SELECT * FROM S [ROWS 3]",
    "SELECT u.a FROM (R UNION ALL Fixed) u": "SELECT u.a FROM (SELECT * FROM R UNION ALL SELECT * FROM Fixed) u",
    "WITH w AS (R UNION q) SELECT a FROM w": "WITH w AS (SELECT * FROM R UNION SELECT * FROM q) SELECT a FROM w",
    "SELECT x FROM S WHERE (a, b) IN (R UNION ALL Fixed)": (
        "SELECT x FROM S WHERE (a, b) IN (SELECT * FROM R UNION ALL SELECT * FROM Fixed)"
    ),
    "ISTREAM(R UNION ALL q)": "ISTREAM(SELECT * FROM R UNION ALL SELECT * FROM q)",
    "ISTREAM(R)": "ISTREAM(SELECT * FROM R)",
    "SELECT d.a FROM DSTREAM(R) [ROWS 2] d": "SELECT d.a FROM DSTREAM(SELECT * FROM R) [ROWS 2] d",
    "SELECT v.p, q FROM S AS v(p, q, r) [PARTITION BY v.q ROWS 2]": (
        "SELECT v.a AS p, v.b AS q FROM S [PARTITION BY b ROWS 2] AS v"
    ),
    "SELECT p FROM S AS v(p, q, r) [PARTITION BY b ROWS 2]": "SELECT a AS p FROM S [PARTITION BY b ROWS 2] v",
    "SELECT p FROM ISTREAM(SELECT a, d FROM R) v(p, q) [PARTITION BY q ROWS 2]": (
        "SELECT a AS p FROM ISTREAM(SELECT a, d FROM R) [PARTITION BY d ROWS 2] v"
    ),
}


@pytest.mark.parametrize("text", UNDERSTOOD)
def test_what_can_be_understood_exactly_is(text: str) -> None:
    ours, other = bind_select(text, INPUTS), bind_select(UNDERSTOOD[text], INPUTS)
    assert result_identity(ours) == result_identity(other)
    assert [c.type for c in ours.root.columns] == [c.type for c in other.root.columns]


def test_clauses_of_statements_take_constants_too() -> None:
    [stream] = parse_text(f"{STREAM} CHRONON 2 * 30 SECONDS MAX AHEAD 2 * 24 HOURS LATE REPAIR WITHIN (1 + 1) DAYS")
    assert stream.chronon_us == 60_000_000  # type: ignore[union-attr]
    assert stream.max_ahead == 172_800_000_000  # type: ignore[union-attr]
    [query] = parse_text(
        "CREATE CONTINUOUS QUERY q START AT TIMESTAMP '2024-01-01' + 2 * INTERVAL 1 DAY"
        " MATERIALIZE RELATION, RSTREAM EVERY 5 * 60 SECONDS ANCHOR DATE '2024-01-01' + 6 HOURS AS fine"
    )
    assert isinstance(query, CreateQuery)
    bound = bind(query, INPUTS)
    assert bound.start == 1_704_240_000_000_000
    assert (bound.every, bound.anchor) == (300_000_000, 1_704_088_800_000_000)


def test_a_query_over_relations_may_declare_its_chronon() -> None:
    def planned(clause: str, select: str = "ISTREAM(planes)") -> Plan:
        [query] = parse_text(f"CREATE CONTINUOUS QUERY q {clause} AS {select}")
        assert isinstance(query, CreateQuery)
        return bind(query, {**INPUTS, "planes": replace(TIMES["planes"], time=TimeDomain(TimeKind.TIMESTAMP, 1))})

    assert planned("").time == TimeDomain(TimeKind.TIMESTAMP, 1)
    assert planned("CHRONON INTERVAL 1 SECOND").time == TimeDomain(TimeKind.TIMESTAMP, 1_000_000)
    assert planned("CHRONON 1 SECOND", "SELECT origin FROM flights").time == TimeDomain(TimeKind.TIMESTAMP, 1_000_000)
    with pytest.raises(TypeError_, match=r"flights counts .* chronon 1 second.*write CHRONON INTERVAL 1 SECOND"):
        planned("CHRONON 1 MINUTE", "SELECT origin FROM flights JOIN planes USING (tailnum)")
    with pytest.raises(TypeError_, match="counts BIGINT ticks"):
        planned("CHRONON 1 MINUTE", "SELECT a FROM R")
    [again] = parse_text(print_plan(planned("CHRONON INTERVAL 1 SECOND")))
    assert isinstance(again, CreateQuery)
    assert again.chronon_us == 1_000_000


def test_a_declared_chronon_is_a_part_of_the_definition() -> None:
    plain, minute, spelt = (
        parse_text(f"CREATE CONTINUOUS QUERY q {clause} CONSTRAINT chronon EXPECT (seats > 0) AS planes")[0]
        for clause in ("", "CHRONON 1 MINUTE", "CHRONON 60 SECONDS")
    )
    assert [*declaration(plain).clauses] == ["CONSTRAINT chronon"]
    assert difference(plain, minute).rebuild
    assert not difference(minute, spelt)


# -- refused -----------------------------------------------------------------------------------------------------------

REFUSED = {
    # lengths and numbers
    "SELECT k FROM fine [RANGE 10 NANOSECONDS]": (27, "round it, such as to 1 MICROSECOND"),
    "SELECT origin FROM flights [RANGE 10 MILLISECONDS]": (35, "declare a finer CHRONON"),
    "SELECT k FROM fine [RANGE 10 ms]": (30, "Write 10 milliseconds"),
    "SELECT k FROM fine [RANGE 10s]": (27, "Write 10 seconds"),
    "SELECT k FROM fine [RANGE '10 seconds']": (27, "Write INTERVAL '10 seconds'"),
    "SELECT k FROM fine [RANGE 2 + 3 SECONDS]": (29, "(2 + 3) SECONDS"),
    "SELECT k FROM fine [RANGE 2 + 3]": (27, "Write INTERVAL (2 + 3) SECONDS"),
    "SELECT k FROM fine [RANGE 1 HOUR / 0]": (34, "Write a constant"),
    "SELECT a FROM S [RANGE 5 / 2]": (24, "no whole number of ticks: 2.5"),
    "SELECT a FROM S [ROWS 5 / 3]": (23, "no whole number of rows: 5/3"),
    "SELECT a FROM S [ROWS 2 - 2]": (23, "Write Rows 1"),
    # windows
    "SELECT a FROM S [RANGE 5 ON a]": (26, "TIMESTAMP BY a"),
    "SELECT a FROM S [RANGE 5 ORDER BY a]": (26, "SEQUENCE BY in CREATE STREAM"),
    "SELECT a FROM S [ROWS 5 PRECEDING]": (25, "Write [ROWS 5], or [Rows 6]"),
    "SELECT a FROM S [RANGE 5 EVERY 2]": (26, "Write [Range 10 Slide 5]"),
    "SELECT a FROM S [TUMBLING 10 SLIDE 5]": (30, "[Hopping 10 Slide 5]"),
    "SELECT a FROM S [RANGE 5, SLIDE 2]": (25, "Write [Range 10 Slide 5]"),
    "SELECT a FROM S [LAST 5 ROWS]": (18, "Write [Rows 5]"),
    "SELECT a FROM S [5 ROWS]": (18, "Write [Rows 5]"),
    "SELECT a FROM S [SLIDING 5]": (18, "Write [Range"),
    "SELECT a FROM S [SESSION GAP 5]": (26, "[Session INTERVAL 5 MINUTES]"),
    "SELECT a FROM S [PARTITION BY b RANGE 5]": (33, "[Range ..] alone"),
    "SELECT SUM(a) OVER (ORDER BY a ROWS 2) AS s FROM S": (37, "Write ROWS 2 PRECEDING"),
    "SELECT MAX(dest) OVER (ORDER BY ts RANGE INTERVAL 1 HOUR) AS s FROM flights": (42, "RANGE INTERVAL 1 HOUR PREC"),
    "SELECT SUM(a) OVER (ORDER BY a ROWS UNBOUNDED) AS s FROM S": (8, "ROWS UNBOUNDED PRECEDING"),
    "SELECT SUM(a) OVER (S [ROWS 5]) AS s FROM S": (15, "FROM S [Rows 5]"),
    # names and lists of columns
    "SELECT v.p FROM S AS v(p, q)": (17, "Name each of a, b, x"),
    "SELECT v.p FROM S AS v()": (23, "AS v(a, b)"),
    "SELECT v.p FROM S AS v(p int, q, r)": (24, "CAST them in SELECT"),
    "SELECT v.p FROM S(p, q, r)": (17, "Write S AS v(a, b)"),
    "SELECT a FROM S UNION ALL q WHERE a > 1": (27, "Write SELECT .. FROM q, or q alone"),
    "SELECT a FROM S UNION ALL SELEC a FROM T": (27, "Did you mean SELECT?"),
    "SELECT ISTREAM(R UNION ALL q)": (16, "Leave SELECT out: ISTREAM(A UNION ALL B)"),
    "SELECT a FROM S OUTER UNION T": (29, "Write UNION, INTERSECT or EXCEPT"),
    # Oracle
    "SELECT S.a FROM S, R WHERE S.a = R.a(+)": (34, "S LEFT JOIN R ON S.a = R.a"),
    "SELECT S.a FROM S, R WHERE S.a (+) = R.a": (28, "S LEFT JOIN R ON S.a = R.a"),
    # Flink, Calcite, RisingWave
    "SELECT a FROM TABLE(TUMBLE(TABLE S, DESCRIPTOR(ts), INTERVAL '1' HOUR))": (21, "S [Tumbling INTERVAL 10 MINUTES]"),
    "SELECT a FROM HOP(S, ts, INTERVAL '1' HOUR, INTERVAL '2' HOUR)": (15, "Slide INTERVAL 5 MINUTES]"),
    "SELECT COUNT(*) AS n FROM S GROUP BY SESSION(ts, INTERVAL '1' HOUR)": (38, "S [Session INTERVAL 10 MINUTES"),
    "SELECT TUMBLE_START(ts, INTERVAL '1' HOUR) AS w FROM S": (8, "WINDOW_START(S)"),
    "SELECT a FROM S EMIT CHANGES": (17, "ISTREAM(SELECT ..)"),
    "SELECT STREAM * FROM S": (1, "SELECT ISTREAM(*)"),
    "SELECT STREAM a FROM S": (8, "SELECT ISTREAM(a, b)"),
    "SELECT FLOOR(ts TO HOUR) AS h FROM flights": (8, "date_trunc('HOUR', ts)"),
    "SELECT S.a FROM S JOIN R FOR SYSTEM_TIME AS OF S.ts ON S.a = R.a": (48, "reads a relation as it is"),
    "SELECT a FROM S MATCH_RECOGNIZE (PARTITION BY a PATTERN (A) DEFINE A AS a > 1)": (17, "joins of windows"),
    # ksqlDB
    "SELECT COUNT(*) AS n FROM S WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY a": (29, "S [Tumbling INTERVAL 10 MINUTES]"),
    "SELECT COUNT(*) AS n FROM S WINDOW SESSION (60 SECONDS) GROUP BY a": (29, "S [Session"),
    "SELECT S.a FROM S JOIN T WITHIN 5 MINUTES ON S.a = T.a": (26, "T [Range INTERVAL 5 MINUTES] ON"),
    "SELECT ROWTIME AS r FROM S": (8, "instant is ts"),
    # Esper
    "SELECT a FROM S#time(5 sec)": (16, "S [Range INTERVAL 5 SECONDS]"),
    "SELECT a FROM S.win:length(5)": (17, "S [Rows 5]"),
    "SELECT a FROM S#unique(a)": (16, "[Partition By a Rows 1]"),
    "SELECT istream a FROM S": (8, "SELECT ISTREAM(a, b)"),
    "SELECT a FROM S OUTPUT LAST EVERY 5 EVENTS": (17, "RSTREAM(SELECT .. EVERY"),
    # Materialize, Spark
    "SELECT a FROM S WHERE mz_now() <= ts": (23, "the stream's instant ts"),
    "SELECT a FROM S AS OF 5": (17, "q__at("),
    "SELECT a FROM STREAM(S)": (15, "FROM S"),
    "SELECT a FROM STREAM S [RANGE 5]": (15, "FROM S"),
    "SELECT COUNT(*) AS n FROM S GROUP BY window(ts, '1 hour')": (38, "S [Tumbling INTERVAL 1 HOUR]"),
    "SELECT COUNT(*) AS n FROM S GROUP BY session_window(ts, '1 hour')": (38, "S [Session INTERVAL"),
    "SELECT a FROM S WATERMARK ts DELAY OF INTERVAL 10 MINUTES": (17, "HEARTBEAT FOR t AS t - INTERVAL"),
    "SELECT a FROM S evaluate every 5 minutes": (17, "RSTREAM(SELECT .. EVERY"),
    # other dialects of SQL
    "SELECT TOP 3 a FROM S ORDER BY a": (8, "ORDER BY a LIMIT 3"),
    "SELECT TOP (3) a FROM S ORDER BY a": (8, "ORDER BY a LIMIT 3"),
    "SELECT a FROM S WHERE ROWNUM < 3": (23, "ORDER BY a LIMIT 3"),
    "SELECT a FROM S WHERE b ~ 'x'": (25, "RLIKE"),
    "SELECT a FROM S WHERE b SIMILAR TO 'x%'": (23, "RLIKE"),
    "SELECT a FROM S WHERE b ISNULL": (25, "a IS NULL"),
    "SELECT a ** 2 AS p FROM S": (10, "pow(a, 2)"),
    "SELECT a // 2 AS p FROM S": (10, "a DIV b"),
    "SELECT [1, 2] AS p FROM S": (8, "array(1, 2)"),
    "SELECT a FROM S WHERE a = ANY (1, 2)": (27, "a IN (1, 2)"),
    "SELECT SAFE_CAST(a AS BIGINT) AS z FROM S": (8, "TRY_CAST"),
    "SELECT a FROM [S]": (10, "FROM `S`"),
    "SELECT S.a FROM S ASOF JOIN T ON S.a = T.a": (19, "T [Partition By a Rows 1]"),
    "SELECT EXTRACT(EPOCH FROM ts) AS e FROM flights": (8, "unix_seconds(a)"),
    "SELECT ts + INTERVAL 2000 NANOSECONDS AS t FROM flights": (13, "INTERVAL 2 MICROSECONDS"),
    "SELECT ts + INTERVAL '5 nanoseconds' AS t FROM flights": (13, "INTERVAL 1 MICROSECOND or more"),
    # statements
    f"{STREAM} WATERMARK FOR t AS t - INTERVAL '5' SECOND": (47, "HEARTBEAT FOR t AS t"),
    "CREATE STREAM s (a INT) FROM DELTA 'p' TIMESTAMP BY t": (17, "those of the source"),
    "CREATE STREAM s AS SELECT a FROM S": (17, "CREATE CONTINUOUS QUERY name AS"),
    "CREATE STREAM IF NOT EXISTS s FROM DELTA 'p' TIMESTAMP BY t": (15, "`sweeparea plan`"),
    "CREATE CONTINUOUS VIEW q AS SELECT a FROM S": (8, "CREATE CONTINUOUS QUERY name AS"),
    "CREATE CONTINUOUS QUERY q (p) AS SELECT a FROM S": (27, "SELECT a AS p"),
    "CREATE CONTINUOUS QUERY q SELECT a FROM S": (27, "Write AS before SELECT"),
    "CREATE CONTINUOUS QUERY q EVERY 5 AS SELECT a FROM S": (27, "RSTREAM(SELECT .. EVERY"),
    "CREATE CONTINUOUS QUERY q HEARTBEAT MANUAL AS SELECT a FROM S": (27, "a clause of CREATE STREAM"),
    "CREATE RELATION r FROM DELTA 'p' CHRONON 1 SECOND": (34, "CREATE CONTINUOUS QUERY over relations alone"),
    f"{STREAM} ON CHANGE FAIL": (47, "Write ON SOURCE CHANGE"),
    f"{STREAM} MAX INTERVAL 1 DAY": (47, "Write MAX AHEAD"),
    f"{STREAM} HEARTBEAT EVERY BATCH": (57, "EACH BATCH"),
    f"{STREAM} CONSTRAINT c CHECK (a > 1)": (60, "Write EXPECT (a > 0)"),
    f"{STREAM} CONSTRAINT c EXPECT (a > 1) ON VIOLATION DROP ROW": (88, "Write QUARANTINE ROW"),
    "CREATE CONTINUOUS QUERY q START 5 AS SELECT a FROM S": (27, "Write START AT"),
    "SELECT a FROM S WHERE a > 1 SLIDE 5": (29, "S [Range INTERVAL 1 HOUR Slide"),
    "SELECT a FROM S SLIDE 5": (23, "S [Range INTERVAL 1 HOUR Slide"),
    "SELECT k FROM fine [TUMBLING BY MILLISECOND]": (33, "[Tumbling INTERVAL 1 MILLISECOND]"),
    "SELECT a FROM S [TUMBLE 5]": (18, "[Tumbling INTERVAL 1 HOUR]"),
    "SELECT a FROM S [Tumbl 5]": (18, "Did you mean Tumbling?"),
    "SUBSCRIBE TO s; SHOW STREAMS": (1, "read them with `sweeparea sql`"),
}  # fmt: skip


def fault(text: str) -> CqlError:
    read = parse_text if text.startswith(("CREATE", "SUBSCRIBE")) else root
    with pytest.raises(SweepAreaError) as caught:
        read(text)
    error = caught.value.errors[0] if isinstance(caught.value, CqlErrors) else caught.value
    assert isinstance(error, CqlError)
    return error


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused_names_the_spelling_to_use(text: str) -> None:
    column, spelling = REFUSED[text]
    error = fault(text)
    assert spelling in str(error)
    assert error.place is not None
    assert error.place.column == column
    assert "Did you mean" not in str(error) or "Did you mean" in spelling


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM S [PARTITION BY b ROWS 2] WERE a > 1",
        "RSTREAM(SELECT a FROM S [NOW] EVERY 5 FOO)",
        "SELECT first(a) AS f FROM S GROUP BI b",
        "SELECT a FROM S JOIN T ON S.a = T.a FOO 5",
    ],
)
def test_words_before_a_fault_are_not_taken_for_another_system(text: str) -> None:
    with pytest.raises(ParseError):
        plan(text)


def test_the_other_systems_words_stay_names() -> None:
    """Only a text that cannot be read is looked at for them."""
    plan("SELECT emit.a AS output, a AS top, a AS every FROM S AS emit")
    plan("SELECT tumble.a, first(a) OVER (PARTITION BY b ORDER BY a) AS hop FROM S AS tumble")


# -- suggestions -------------------------------------------------------------------------------------------------------


def typos(word: str) -> set[str]:
    """One letter left out, doubled or exchanged with the next."""
    found = set()
    for i in range(len(word)):
        found |= {word[:i] + word[i + 1 :], word[: i + 1] + word[i:]}
        found.add(word[:i] + word[i + 1 : i + 2] + word[i] + word[i + 2 :])
    return {t for t in found if t != word and len(t) > 2}


@pytest.mark.parametrize("word", [w for w in keywords._TYPED if " " not in w and len(w) > 4])
def test_a_misspelt_keyword_is_told(word: str) -> None:
    for typo in typos(word) - set(keywords._TYPED) - set(keywords.PLACES):
        told = keywords.misspelt(typo)
        assert told, typo
        near = told.removeprefix("Did you mean ").rstrip("?")
        assert near == word or near in {"ISTREAM", "DSTREAM", "RSTREAM", "STREAM"}, (typo, near)


@pytest.mark.parametrize("word", sorted(keywords.PLACES))
def test_a_keyword_at_the_wrong_place_is_no_misspelt_other_one(word: str) -> None:
    """EVERY is not meant as QUERY: what is told is where the word stands."""
    if word in ("GROUP", "ORDER"):
        assert keywords.misspelt(word) == f"Did you mean {word} BY?"
        return
    assert keywords.misspelt(word) == ""
    with pytest.raises(SweepAreaError) as caught:
        parse_text(f"CREATE CONTINUOUS QUERY q {word} {word} {word} AS SELECT a FROM S")
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize("word", ["EMIT", "CHANGES", "MINUTES", "FINAL", "evaluate", "wibble"])
def test_words_that_resemble_nothing_suggest_nothing(word: str) -> None:
    assert keywords.misspelt(word) == ""


def test_refusals_are_refusals() -> None:
    for text in ("SELECT a FROM S EMIT CHANGES", "SELECT a FROM S#length(5)"):
        assert isinstance(fault(text), RefusedError)
