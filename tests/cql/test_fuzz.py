"""Mutated texts: whatever is typed, the answer is a plan or an error that is meant to be read, and soon."""

from __future__ import annotations

import random
import time

from sweeparea.cql.explain import explain
from sweeparea.cql.statements import parse_text
from sweeparea.infra.errors import SweepAreaError
from tests.cql.schemas import plan
from tests.cql.test_expressions import EXPRESSIONS
from tests.cql.test_refused import QUERIES
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
LATERAL VALUES EVERY OVER(
"""
WORDS = [*_TEXT.split(), "\t", "\n", "\x00", ""]


def mutated(text: str, random_: random.Random) -> str:
    pieces = text.split(" ")
    for _ in range(random_.choice((1, 1, 2, 4))):
        at = random_.randrange(len(pieces) + 1)
        match random_.randrange(6):
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
                pieces = (
                    joined[:cut] + random_.choice("()[]',.;*`\"-\\") + joined[cut + random_.randint(0, 2) :]
                ).split(" ")
            case _:
                i, j = min(at, len(pieces) - 1), random_.randrange(len(pieces))
                pieces[i], pieces[j] = pieces[j], pieces[i]
    return " ".join(pieces)


def test_mutated_queries() -> None:
    random_ = random.Random(20260128)
    plans = refused = 0
    kinds: set[str] = set()
    for _ in range(1600):
        seed = random_.choice(VALID if random_.random() < 0.6 else SEEDS)
        if random_.random() < 0.3:
            seed = seed.replace(" a ", f" {random_.choice(EXPRESSIONS)} ", 1)
        text = mutated(seed, random_)
        begin = time.perf_counter()
        try:
            explain(plan(text))
            plans += 1
        except SweepAreaError as error:
            kinds.add(error.type)
            refused += 1
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error} for {text!r}") from error
        assert time.perf_counter() - begin < 5, f"slow: {text!r}"
    assert plans > 20
    assert refused > 500
    assert kinds == KINDS


def test_mutated_statements() -> None:
    random_ = random.Random(7)
    kinds: set[str] = set()
    for _ in range(400):
        text = mutated(APPLICATION, random_)
        try:
            parse_text(text)
        except SweepAreaError as error:
            kinds.add(error.type)
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error} for {text!r}") from error
    assert kinds <= KINDS
