"""The application that a case describes: no source tables, no ``.cql`` files, no registration."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeparea.cql.binding.binder import InputSchema, bind_select
from sweeparea.cql.binding.scope.inputs import SchemaKind
from sweeparea.cql.syntax.parser import parse_text
from sweeparea.cql.syntax.statements import ConstraintSpec, CreateQuery
from sweeparea.infra.errors import DataError
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.stream_kind import ResultKind, StreamKind
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.cases.shape import SHOWN, member, shaped, text
from sweeparea.spark_jobs.cases.source import CaseSource
from sweeparea.spark_jobs.declarations.declarations import Declarations
from sweeparea.spark_jobs.declarations.sources import Sources
from sweeparea.spark_jobs.deployment.query_plans import QueryPlans
from sweeparea.spark_jobs.deployment.registry import Registry
from sweeparea.tables.log.schema import spark_type
from sweeparea.tables.publication.deployed import Deployed
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind

if TYPE_CHECKING:
    from sweeparea.spark_jobs.declarations.analysis import Checking

_TABLES = (ResultKind.RELATION, ResultKind.ISTREAM, ResultKind.DSTREAM)


@dataclass
class _Declared:
    """What stands in for a catalog: the names a case declares, and each query's text."""

    streams: list[str]
    relations: list[str]
    queries: dict[str, str]


class CaseSources(Sources):
    """The inputs of a case: their columns are those that it gives."""

    def __init__(self, declared: Declarations, given: dict[str, CaseSource], time: TimeDomain) -> None:
        super().__init__(declared)
        self.given, self._time = given, time

    def schema(self, name: str) -> InputSchema:
        source = self.given[name]
        columns = tuple((column, spark_type(kind)) for column, kind in source.types.items())
        return InputSchema(
            name,
            SchemaKind(source.kind),
            columns,
            self._time,
            retroactive=source.retroactive,
            sequence_by=source.sequence_by,
        )


class CasePlans(QueryPlans):
    """The plans of a case's queries, made once."""

    def __init__(
        self,
        declared: Declarations,
        sources: CaseSources,
        deployed: Deployed,
        case: dict[str, Any],
        start: int,
        rstreams: dict[str, tuple[int, int]],
    ) -> None:
        super().__init__(declared, sources, deployed)
        self._given, self._start, self._rstreams = sources.given, start, rstreams
        settings = {"strategy": case.get("strategy"), **shaped(case.get("settings"), dict, "settings")}
        self._settings = {
            k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in settings.items() if v is not None
        }
        # all that a result shows, or what the case says; the stream itself is always kept
        self._kept = tuple(map(_result_kind, shaped(case.get("materialize"), list, "materialize"))) or _TABLES
        self._constraints = [
            _constraint(spec) for spec in shaped(case.get("constraints"), list, "The member constraints")
        ]
        self._plans: dict[str, Plan] = {}

    def forget(self, name: str) -> None:
        """The plan of a query is made anew."""
        self._plans.pop(name, None)

    def whole(self, name: str, measured: object = None) -> Plan:
        """A case's queries share nothing with each other."""
        return self.plan(name)

    def queries_under(self, name: str) -> list[str]:
        """The input alone: a case's queries are planned one after the other, as it lists them."""
        return [name]

    def rests_on(self, query: str) -> tuple[str, ...]:
        """Nothing of a case is registered."""
        return ()

    def plan(self, name: str) -> Plan:
        """Binds the query over the inputs and the queries before it; all of its tables are kept, since the result
        shows them.
        """
        if name not in self._plans:
            texts: dict[str, str] = self.declared.catalog.queries  # type: ignore[assignment]
            before = list(texts)[: list(texts).index(name)]
            kept = [f"{n}__{kind}" for n in before for kind in self.plan(n).materialize]
            names = [*self._given, *before, *(n for n in kept if n not in self._given)]
            inputs = {n: self.input_schema(n) for n in names}
            # others read what comes before the last, so it is kept whole
            kinds = _TABLES if name in self._rstreams or name != list(texts)[-1] else self._kept
            plan = bind_select(
                texts[name],
                inputs,
                self._settings,
                name=name,
                start=self._start,
                analyze=self.declared.analyze,
                materialize=kinds,
                constraints=self._constraints if name == list(texts)[-1] or name in self._rstreams else (),
            )
            materialize = plan.materialize
            if name in self._rstreams:
                every, anchor = self._rstreams[name]
                plan = replace(plan, every=every, anchor=anchor)
            if name in self._rstreams or plan.stream == StreamKind.RSTREAM:
                materialize = (*(k for k in materialize if k != ResultKind.RSTREAM), ResultKind.RSTREAM)
            self._plans[name] = replace(plan, materialize=materialize)
        return self._plans[name]


def _result_kind(given: object) -> ResultKind:
    known = [kind.value for kind in ResultKind if kind != ResultKind.QUARANTINE]
    if given in known:
        return ResultKind(given)
    raise DataError(f"materialize lists {', '.join(known)}, not {given!r}. {SHOWN}")


def _constraint(given: object) -> ConstraintSpec:
    """A constraint of the case's query: ``name``, ``expect`` (the condition) and ``on_violation``."""
    spec = shaped(given, dict, "A constraint")
    name, condition = (text(member(spec, part, "A constraint"), f"Its {part}") for part in ("name", "expect"))
    outcome = text(spec.get("on_violation", "QUARANTINE ROW"), "Its on_violation")
    quoted = name.replace("`", "``")
    statement = (
        f"CREATE CONTINUOUS QUERY q CONSTRAINT `{quoted}` EXPECT ({condition}) ON VIOLATION {outcome} AS SELECT 1"
    )
    (parsed,) = parse_text(statement, "<constraint>")
    assert isinstance(parsed, CreateQuery)
    return parsed.constraints[0]


class CaseRegistry(Registry):
    """A case lives for one run, so nothing of it is registered."""

    def registration(self, name: str, row: LedgerRow | None) -> str:
        return str(uuid.uuid4()) if row is None else row.registration

    def fingerprint(self, name: str) -> str:
        return "replay"

    def settle(self, name: str) -> None:
        """A case's plans are made once."""

    def check_state(self, plan: Plan, row: LedgerRow | None) -> None:
        """A case's plans are made once."""

    def paused(self, name: str) -> bool:
        return False


class ReplayApplication(Application):
    """An application that a case describes: no source tables, no ``.cql`` files."""

    def __init__(
        self,
        folder: Path,
        sources: dict[str, CaseSource],
        queries: list[tuple[str, str]],
        start: int,
        case: dict[str, Any],
        time: TimeDomain,
        rstreams: dict[str, tuple[int, int]] | None = None,
    ) -> None:
        declared = _Declared(
            [n for n, s in sources.items() if s.kind == NameKind.STREAM],
            [n for n, s in sources.items() if s.kind == NameKind.RELATION],
            dict(queries),
        )
        super().__init__("replay", declared, folder)  # type: ignore[arg-type]
        self.sources = given = CaseSources(self, sources, time)
        self.plans = self._case_plans = CasePlans(self, given, Deployed(str(folder)), case, start, rstreams or {})
        self.registry = CaseRegistry(self, self.plans)

    def is_static(self, name: str) -> bool:
        return False

    def check_types(self, name: str, checking: Checking) -> None:
        """TypeError, with its place in the text, for each expression of a query that Spark refuses."""
        self._case_plans.forget(name)
        with self.asking(checking):
            self.plans.plan(name)
