"""What the language knows and this version does not offer is refused by name, with its place."""

from __future__ import annotations

import pytest

from sweeparea.cql.declarations.catalog import Catalog
from sweeparea.cql.declarations.offered import not_offered_statements
from sweeparea.cql.syntax.parser import parse_text
from sweeparea.cql.text.errors import RefusedError
from tests.cql.schemas import plan

QUERIES = {
    "SELECT window(ts, '1 hour') AS w FROM S": "Spark's window(..)",
    "WITH RECURSIVE w AS (SELECT a FROM S) SELECT a FROM w": "WITH RECURSIVE",
    "SELECT a FROM S VERSION AS OF 3": "time travel",
}


@pytest.mark.parametrize(("text", "construct"), QUERIES.items())
def test_query_is_refused(text: str, construct: str) -> None:
    with pytest.raises(RefusedError) as caught:
        plan(text)
    assert caught.value.message.startswith(construct)
    assert "is not offered by this version" in caught.value.message
    assert caught.value.place is not None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT a FROM S LIMIT 3", "LIMIT without ORDER BY is refused"),
        ("SELECT a FROM (SELECT a FROM S LIMIT 3) w", "LIMIT without ORDER BY is refused"),
        ("SELECT approx_count_distinct(a) AS n FROM S", "is approximate"),
        *(
            (f"SELECT {call} AS k FROM S", "is not deterministic")
            for call in (
                "rand()",
                "randn(5)",
                "uuid()",
                "now()",
                "current_timestamp",
                "current_timestamp()",
                "current_date",
                "curdate()",
                "localtimestamp()",
                "unix_timestamp()",
                "monotonically_increasing_id()",
                "spark_partition_id()",
                "shuffle(array(1))",
                "input_file_name()",
                "current_user()",
                "TIMESTAMP 'now'",
                "CAST('today' AS DATE)",
                "a + int(rand() * 5)",
            )
        ),
    ],
)
def test_query_is_refused_for_a_reason(text: str, reason: str) -> None:
    with pytest.raises(RefusedError) as caught:
        plan(text)
    assert reason in caught.value.message
    assert caught.value.place is not None


STREAM = "CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t "
RELATION = "CREATE RELATION r FROM DELTA 'p' "


@pytest.mark.parametrize(
    "clause",
    [
        "LATE REPAIR WITHIN INTERVAL 2 DAYS",
        "LATE REPAIR",
        "ON SOURCE CHANGE CORRECT",
        "DEDUPLICATE BY id WITHIN INTERVAL 1 DAY",
        "HEARTBEAT PER k AS t IDLE AFTER INTERVAL 1 HOUR",
        "HEARTBEAT POLICY 'module:function'",
    ],
)
def test_clauses_of_streams_are_offered(clause: str) -> None:
    [statement] = parse_text(STREAM + clause)
    assert not_offered_statements(statement) == []
    assert Catalog.of([statement]).streams["s"] == statement


@pytest.mark.parametrize(
    "clauses",
    [
        "HISTORY BY (valid_from, valid_to) HEARTBEAT FOR valid_from AS valid_from LATE REPAIR WITHIN INTERVAL 2 DAYS",
        "CHANGES BY (op, ts) KEY (k) SEQUENCE BY n HEARTBEAT PER k AS ts",
        "CHANGES BY (op, ts) HEARTBEAT POLICY 'module:function'",
        "CHANGE DATA FEED NON RETROACTIVE",
    ],
)
def test_kinds_of_relations_are_offered(clauses: str) -> None:
    [statement] = parse_text(RELATION + clauses)
    assert not_offered_statements(statement) == []
    assert Catalog.of([statement]).relations["r"] == statement
