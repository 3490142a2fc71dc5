"""What Spark's functions take and give, asked of Spark's analyzer: writes ``cql/functions/spark_signatures.txt``.

For every function, operator and cast of Spark and each number of arguments up to three, an expression over columns of
every combination of sample types is analysed; no job runs. Run once for a version of Spark, some ten minutes:

    python -m sweeparea.spark_jobs.declarations.function_signatures
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeparea.cql.functions.signatures import FAMILIES, ResultRule, RuleKind, Sample, family_of, rules_of
from sweeparea.spark_jobs.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = Path(__file__).parents[2] / "cql" / "functions" / "spark_signatures.txt"
SAMPLES = tuple(sample for samples in FAMILIES.values() for sample in samples)
FEW = (
    "boolean", "int", "double", "decimal(10,2)", "string", "binary", "date", "timestamp", "array<int>",
    "map<string,int>", "interval day to second",
)  # fmt: skip
"""The sample types of calls with three arguments."""
MOST = 7
"""Calls with up to so many arguments are tried; one that takes so many is taken to have no limit."""
_GROUPS_LEFT_OUT = ("window_funcs", "generator_funcs", "table_funcs", "lambda_funcs", "sketch_funcs")
_LEFT_OUT = ("struct", "named_struct", "map")
"""Functions that take everything and give a type made of all arguments'."""
_BINARY = ("=", "<", "<=>", "+", "-", "*", "/", "%", "div", "||", "&", "|", "^", "<<", ">>", ">>>", "AND", "OR",
           "LIKE", "ILIKE", "RLIKE")  # fmt: skip
_UNARY = ("-", "~", "NOT")
_CALLS: dict[str, Callable[[Sequence[str]], str]] = {
    "percentile_cont": lambda a: f"percentile_cont({a[0]}) WITHIN GROUP (ORDER BY {a[1]})",
    "percentile_disc": lambda a: f"percentile_disc({a[0]}) WITHIN GROUP (ORDER BY {a[1]})",
}
_CONSTANT = {("percentile", 1): "0.5", ("percentile_cont", 0): "0.5", ("percentile_disc", 0): "0.5",
             ("listagg", 1): "','", ("string_agg", 1): "','", ("max_by", 2): "2", ("min_by", 2): "2"}  # fmt: skip
"""Arguments that Spark wants as constants: their samples would all be refused."""

VOID = "void"
"""The type of a NULL without one: Spark casts it to what a function wants, so calls over nothing else are asked about,
too."""

Combination = tuple[str, ...]


class Analyzer:
    """Spark's analyzer over an empty view with a column of each sample type."""

    def __init__(self, spark: SparkSession) -> None:
        state = spark._jsparkSession.sessionState()  # type: ignore[attr-defined]  # pyright: ignore
        self._parser, self._analyzer = state.sqlParser(), state.analyzer()
        self._names = {t: f"`{i}`" for i, t in enumerate(SAMPLES)}
        columns = [f"CAST(NULL AS {t}) AS {n}" for t, n in self._names.items()]
        spark.range(0).selectExpr(*columns).createOrReplaceTempView("samples")

    def column(self, sample: str) -> str:
        return self._names[sample]

    def types(self, expressions: Sequence[str]) -> list[str | None]:
        """The type of each expression; None where it cannot be."""
        found: list[str | None] = []
        for at in range(0, len(expressions), 250):
            part = expressions[at : at + 250]
            try:
                found += self.analysed(part)
            except Exception:  # what Spark raises here is one of many classes of the JVM's
                found += [self._one(e) for e in part]
        return found

    def of_nulls(self, name: str, text: Callable[[Sequence[str]], str], count: int) -> str | None:
        """The type of a call over NULLs without a type; None where there is none, or Spark names a part of it."""
        found = self._one(text([_CONSTANT.get((name, i)) or "NULL" for i in range(count)]))
        return None if found is None or "`" in found or " not null" in found else found

    def _one(self, expression: str) -> str | None:
        try:
            return self.analysed([expression])[0]
        except Exception:
            return None

    def analysed(self, expressions: Sequence[str]) -> list[str | None]:
        """As ``types``; raises what Spark raises, of one for all."""
        text = ", ".join(f"{e} AS q{i}" for i, e in enumerate(expressions))
        plan: Any = self._analyzer.execute(self._parser.parsePlan(f"SELECT {text} FROM samples"))
        aggregate = "Aggregate" in plan.getClass().getName()
        outputs = (plan.aggregateExpressions() if aggregate else plan.expressions()).iterator()
        found: list[str | None] = []
        while outputs.hasNext():
            output = outputs.next()
            type_ = output.dataType().sql().lower() if output.resolved() else None
            found.append(type_ and type_.replace(", ", ",").replace(": ", ":"))
        if len(found) != len(expressions):
            raise ValueError(f"{len(found)} types of {len(expressions)} expressions")
        return found


def _calls(spark: SparkSession) -> Iterator[tuple[str, int, Callable[[Sequence[str]], str]]]:
    """Everything to be asked about: name, number of arguments, text."""
    for operator in _BINARY:
        yield operator, 2, lambda a, o=operator: f"({a[0]} {o} {a[1]})"
    for operator in _UNARY:
        yield operator, 1, lambda a, o=operator: f"({o} {a[0]})"
    for sample in SAMPLES:
        yield f"cast {sample}", 1, lambda a, t=sample: f"CAST({a[0]} AS {t})"
    jvm: Any = spark._jvm  # type: ignore[attr-defined]  # pyright: ignore
    catalog = spark._jsparkSession.sessionState().catalog()  # type: ignore[attr-defined]  # pyright: ignore
    for (name,) in spark.sql("SHOW SYSTEM FUNCTIONS").collect():
        if not name.isidentifier() or name in _LEFT_OUT:
            continue
        identifier = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name)
        if catalog.lookupFunctionInfo(identifier).getGroup() in _GROUPS_LEFT_OUT:
            continue
        for count in range(MOST + 1):
            yield name, count, _CALLS.get(name, lambda a, n=name: f"{n}({', '.join(a)})")


def ask(spark: SparkSession) -> Iterator[tuple[str, int, dict[Combination, str]]]:
    """What Spark says: of each name and number of arguments that it takes, the types that it accepts and gives."""
    analyzer = Analyzer(spark)
    for name, count, text in _calls(spark):

        def call(types: Combination, name: str = name, text: Callable[[Sequence[str]], str] = text) -> str:
            return text([_CONSTANT.get((name, i)) or analyzer.column(t) for i, t in enumerate(types)])

        try:
            analyzer.analysed([call(("int",) * count)])
        except Exception as error:
            if any(word in str(error) for word in ("WRONG_NUM_ARGS", "UNEXPECTED_POSITIONAL", "REQUIRED_PARAMETER")):
                continue
        combinations = [] if count > 3 else list(itertools.product(SAMPLES if count < 3 else FEW, repeat=count))
        types = analyzer.types([call(c) for c in combinations])
        accepted = {c: t for c, t in zip(combinations, types, strict=True) if t is not None}
        if accepted and count and not name.startswith("cast "):
            of_nulls = analyzer.of_nulls(name, text, count)
            accepted |= {} if of_nulls is None else {(VOID,) * count: of_nulls}
        yield name, count, accepted


# -- what Spark says as rows -------------------------------------------------------------------------------------------


def lines(answers: Iterable[tuple[str, int, dict[Combination, str]]]) -> list[str]:
    """The file's lines: ``names count`` and below it, of each accepted combination of types, what comes out."""
    blocks: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for name, count, accepted in answers:
        rows = _rows(accepted, count) if accepted else []
        blocks.setdefault((count, tuple(f" {row}" for row in rows)), []).append(name)
    return [line for (count, rows), names in blocks.items() for line in (f"{','.join(names)} {count}", *rows)]


def _rows(accepted: dict[Combination, str], count: int) -> list[str]:
    if count == 0:
        return [f"-> {next(iter(accepted.values()))}"]
    found = []
    of_nulls = accepted.get((VOID,) * count)
    boxes = _boxes([entry for entry in accepted.items() if VOID not in entry[0]], count)
    for sets, rule in boxes:
        if rule is not None and rule.kind == RuleKind.CONST and _particular(rule.type, sets):
            rule = None  # it holds of the sample, and of who knows which others
        shown = " ; ".join("|".join(_shown(s, count, rule)) for s in sets)
        found.append(f"{shown} -> {rule if rule is not None else '?'}")
    if of_nulls is not None and {rule for _, rule in boxes} != {ResultRule.parse(of_nulls)}:
        found.append(f"{' ; '.join([VOID] * count)} -> {of_nulls}")
    return found


def _boxes(
    entries: list[tuple[Combination, str]], count: int
) -> list[tuple[tuple[tuple[str, ...], ...], ResultRule | None]]:
    """Products of sets of types that cover the combinations, each with one rule."""
    rules: set[ResultRule] | None = None
    for types, result in entries:
        holds = rules_of(types, result)
        rules = holds if rules is None else rules & holds
    sets = tuple(tuple(dict.fromkeys(types[i] for types, _ in entries)) for i in range(count))
    size = 1
    for one in sets:
        size *= len(one)
    if rules and size == len(entries):
        return [(sets, _likeliest(rules, sets))]
    # cut along the first position that has several types, and put together again what came out alike
    at = next(i for i, one in enumerate(sets) if len(one) > 1)
    merged: dict[tuple[Any, ...], list[str]] = {}
    for type_ in sets[at]:
        for inner, rule in _boxes([e for e in entries if e[0][at] == type_], count):
            rest = (*inner[:at], *inner[at + 1 :])
            merged.setdefault((rest, rule if rule is None or rule.kind == RuleKind.CONST else str(rule)), []).append(
                type_
            )
    boxes = []
    for (rest, rule), types in merged.items():
        kept = rule if isinstance(rule, ResultRule) or rule is None else ResultRule.parse(rule)
        boxes.append(((*rest[:at], tuple(types), *rest[at:]), kept))
    return boxes


def _likeliest(rules: set[ResultRule], sets: Sequence[Sequence[str]]) -> ResultRule:
    """Of several rules that hold: one that follows an argument if that was tried with several types or is made of
    others, else the constant.
    """

    def rank(rule: ResultRule) -> tuple[int, ResultRule]:
        follows = rule.kind != RuleKind.CONST and (len(sets[rule.at]) > 1 or _particular(sets[rule.at][0], sets))
        return (0 if follows else 1 if rule.kind == RuleKind.CONST else 2), rule

    return min(rules, key=rank)


def _particular(result: str, sets: Sequence[Sequence[str]]) -> bool:
    """Whether a constant result repeats the inside of a sample type: a decimal's digits, a struct's fields."""
    inside = ("decimal(", "struct<", "array<", "map<")
    given = [t for one in sets for t in one]
    return any(word in result for word in inside) and any(t.startswith(inside) for t in given)


def _shown(types: Sequence[Sample], count: int, rule: ResultRule | None) -> list[str]:
    """Types by their families where all of a family's samples are there."""
    shown: list[str] = []
    for family, samples in FAMILIES.items():
        tried = [s for s in samples if count < 3 or s in FEW]
        given = [s for s in tried if s in types]
        narrow = count == 3 and rule is not None and rule.kind == RuleKind.CONST and family_of(rule.type) == family
        if tried and given == tried and not (narrow and len(tried) < len(samples)):
            shown.append(family)
        else:
            shown += given
    return shown


def main() -> None:
    with spark_session() as spark:
        head = [
            f"# What functions, operators and casts of Spark {spark.version} take and give, in ANSI mode.",
            "# Written by function_signatures.py of spark_jobs from Spark's own analyzer; read by"
            " cql/functions/signatures.py.",
            "# 'names count' and, below it, types by position -> type of the result; ? where it depends on more.",
        ]
        FILE.write_text("\n".join([*head, *lines(ask(spark))]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
