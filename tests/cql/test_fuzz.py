"""Mutated texts: whatever is typed, the answer is a plan or an error that is meant to be read, and soon."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable

import pytest

from sweeparea.cql.binding.binder import bind_select
from sweeparea.cql.explain import explain
from sweeparea.cql.syntax.parser import parse_text
from sweeparea.infra.errors import SweepAreaError
from tests.cql.generate_queries import QueryGenerator
from tests.cql.schemas import TICKS, plan
from tests.cql.test_expressions import EXPRESSIONS
from tests.cql.test_papers import FOLDER, bound, files, schemas
from tests.cql.test_refused import QUERIES
from tests.cql.test_round_trip import STATEMENTS
from tests.cql.test_statements import APPLICATION

VALID = [
    "SELECT origin, dest, AVG(dep_delay) AS d, COUNT(*) AS n FROM flights [RANGE INTERVAL 6 HOURS "
    "SLIDE INTERVAL 1 HOUR ANCHOR TIMESTAMP '2013-01-01'] GROUP BY origin, dest HAVING COUNT(*) >= 5",
    "SELECT ISTREAM(f.origin, p.seats AS s) FROM flights [Range 30 Seconds] f JOIN planes p USING (tailnum)",
    "WITH w(k) AS (SELECT DISTINCT a FROM S [Hopping 10 Slide 5]) SELECT k, ts AS at FROM w, T [Fixed 5], R x(c, d)",
    "SELECT a, CASE WHEN a > 1 THEN 'x' ELSE b END AS c FROM (ISTREAM(SELECT a, b FROM S [From 5])) [Range 3] q",
    "SELECT a FROM S [Now] UNION ALL SELECT a FROM T [Now] UNION (SELECT a FROM R)",
    "SELECT a FROM S",
    "SELECT * FROM S [Range 5] WHERE a > 1 AND b LIKE 'x%'",
    "SELECT a , b , x AS k FROM S [Now]",
    "DSTREAM(SELECT R.d, count(*) AS n FROM S [Tumbling 5], R WHERE S.a = R.a GROUP BY d)",
    "SELECT max(a + 1L) * 2 AS m, count(a, b), upper(b) FROM S GROUP BY upper(b), 3 HAVING m > 1.5BD",
]
SEEDS = [*VALID, *QUERIES]
KINDS = {"ParseError", "BindError", "TypeError", "RefusedError"}
_TEXT = r"""
SELECT FROM WHERE GROUP BY HAVING UNION ALL JOIN ON USING AS WITH ISTREAM( DSTREAM( ( ) [ ] , . ; * ' " ` --
/* */ [Range [Now] Slide Lag Anchor 5 -1 1e9 99999999999999999999 INTERVAL HOURS a b S T R ts NULL NOT IN
BETWEEN CASE WHEN END DISTINCT count(*) sum(a) x.y -> => :: = <> || + % { } ? : @ $ \ # é 🛩 LIMIT ORDER EXISTS
LATERAL VALUES EVERY OVER( Partition Rows Session When Tumbling By RSTREAM( WINDOW_START(S) ALL ANY SEMI ANTI
FULL OUTER EXCEPT INTERSECT ROLLUP( FILTER WITHIN GROUPING SETS LATERAL VIEW QUALIFY 1e400 0x1F -> ... ::
"""
WORDS = [*_TEXT.split(), "\t", "\n", "\x00", ""]


def mutated(text: str, random_: random.Random) -> str:
    """A text with one to four tokens deleted, doubled, moved, exchanged or broken, or cut short."""
    pieces = text.split(" ")
    for _ in range(random_.choice((1, 1, 2, 4))):
        at = random_.randrange(len(pieces) + 1)
        match random_.randrange(10):
            case 0:
                pieces.insert(at, random_.choice(WORDS))
            case 1 if len(pieces) > 1:
                del pieces[min(at, len(pieces) - 1)]
            case 2:
                pieces[min(at, len(pieces) - 1)] = random_.choice(WORDS)
            case 3:
                other = random_.choice(SEEDS).split(" ")
                cut = random_.randrange(len(other))
                pieces[at:at] = other[cut : cut + random_.randint(1, 6)]
            case 4:
                joined = " ".join(pieces)
                cut = random_.randrange(len(joined) + 1)
                broken = joined[:cut] + random_.choice("()[]',.;*`\"-\\") + joined[cut + random_.randint(0, 2) :]
                pieces = broken.split(" ")
            case 5 if len(pieces) > 1:  # cut short
                pieces = pieces[: max(at, 1)]
            case 6:
                pieces.insert(at, pieces[min(at, len(pieces) - 1)])
            case 7:
                pieces[min(at, len(pieces) - 1)] = chr(random_.choice((random_.randrange(1, 0x250), 0x1F680, 0xFEFF)))
            case 8:
                n = random_.choice((2, 10, 60))
                pieces.insert(min(at, len(pieces) - 1), "(" * n)
                pieces.append(")" * n)
            case 9:
                numbers = [i for i, piece in enumerate(pieces) if piece.isdigit()]
                if numbers:
                    pieces[random_.choice(numbers)] = random_.choice(
                        ("9" * 40, "-1", "0", "1.5", "1e400", "2147483648L")
                    )
            case _:
                i, j = min(at, len(pieces) - 1), random_.randrange(len(pieces))
                pieces[i], pieces[j] = pieces[j], pieces[i]
    return " ".join(pieces)


def outcome(text: str, action: Callable[[str], object], seconds: float = 2) -> str:
    """``ok``, or the type of the error; anything but an error that is meant to be read fails the test."""
    begin = time.process_time()
    try:
        action(text)
        found = "ok"
    except SweepAreaError as error:
        found = error.type if str(error).strip() else "no message"
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error} for {text[:2000]!r}") from error
    assert time.process_time() - begin < seconds, f"slow: {text[:2000]!r}"
    return found


def query_outcomes(seed: int, count: int) -> Counter[str]:
    """What becomes of mutated queries: hand-written, refused, generated."""
    random_ = random.Random(seed)
    generator = QueryGenerator(random_, TICKS)
    found: Counter[str] = Counter()
    for _ in range(count):
        kind = random_.random()
        text = random_.choice(VALID) if kind < 0.4 else random_.choice(SEEDS) if kind < 0.6 else generator.query()
        if random_.random() < 0.3:
            text = text.replace(" a ", f" {random_.choice(EXPRESSIONS)} ", 1)
        found[outcome(mutated(text, random_), lambda t: explain(plan(t)))] += 1
    return found


def paper_outcomes(seed: int, count: int) -> Counter[str]:
    """What becomes of mutated queries of the papers over the papers' streams."""
    random_ = random.Random(seed)
    texts = {f: [part for part in (FOLDER / f).read_text().split(";") if " AS\n" in part] for f in files()}
    found: Counter[str] = Counter()
    for _ in range(count):
        file = random_.choice(files())
        bound(file)
        query = random_.choice(texts[file]).partition(" AS\n")[2] or "SELECT"
        found[outcome(mutated(query, random_), lambda t, f=file: bind_select(t, schemas(f)))] += 1
    return found


def statement_outcomes(seed: int, count: int) -> Counter[str]:
    """What becomes of mutated statements."""
    random_ = random.Random(seed)
    seeds = [APPLICATION, *STATEMENTS, *((FOLDER / f).read_text() for f in files())]
    return Counter(outcome(mutated(random_.choice(seeds), random_), parse_text) for _ in range(count))


def test_mutated_queries() -> None:
    found = query_outcomes(20260128, 400)
    assert found["ok"] > 10
    assert {"ParseError", "BindError", "RefusedError"} <= set(found) <= {"ok", *KINDS}


def test_mutated_queries_of_the_papers() -> None:
    found = paper_outcomes(3, 120)
    assert set(found) <= {"ok", *KINDS}


def test_mutated_statements() -> None:
    assert set(statement_outcomes(7, 200)) <= {"ok", *KINDS}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_ten_thousand_mutations(seed: int) -> None:
    for outcomes, count in ((query_outcomes, 1500), (paper_outcomes, 600), (statement_outcomes, 400)):
        assert set(outcomes(1000 + seed, count)) <= {"ok", *KINDS}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM " + "(SELECT * FROM " * 80 + "S" + ")" * 80,
        "SELECT a FROM S WHERE " + "NOT " * 3000 + "TRUE",
        "SELECT a FROM S WHERE a IN (" + "1, " * 20_000 + "1)",
        "SELECT " + ", ".join(f"a AS c{i}" for i in range(3000)) + " FROM S",
        "SELECT a FROM S " + " UNION ALL SELECT a FROM S " * 300,
        "SELECT a FROM S" + " JOIN S USING (a)" * 120,
        "ISTREAM(" * 300 + "SELECT a FROM S" + ")" * 300,
        "SELECT " + "CASE WHEN a > 1 THEN " * 300 + "1" + " END" * 300 + " AS k FROM S",
        "SELECT a FROM S [Range " + "9" * 5000 + "]",
        "SELECT a FROM S [Rows " + "9" * 5000 + "]",
        "SELECT a FROM S [" + "(" * 3000,
        "SELECT '" + "x" * 500_000 + "' AS k FROM S",
        "SELECT a FROM S -- " + "x" * 500_000,
        "[" * 5000,
        "\ufeff SELECT a FROM S",
        "SELECT a FROM S\x00",
        "\x00",
        "é" * 2000,
    ],
)
def test_monstrous_texts(text: str) -> None:
    assert outcome(text, plan, seconds=5) in {"ok", *KINDS}
