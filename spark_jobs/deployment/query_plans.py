"""The plans of an application's queries, and what they are chosen by: texts, inputs, rates and what they share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sweeparea.cql.binding.binder import InputSchema, bind
from sweeparea.cql.binding.scope.inputs import SchemaKind
from sweeparea.cql.rewrites import MeasuredInput, choose, hidden_query, take
from sweeparea.cql.syntax.statements import CreateQuery
from sweeparea.cql.text.errors import BindError
from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.infra.deep_stack import bottom_up
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.stream_kind import ResultKind
from sweeparea.spark_jobs.declarations.declarations import Declarations
from sweeparea.spark_jobs.declarations.sources import Sources
from sweeparea.spark_jobs.deployment.planned import Planned, shared_by_others
from sweeparea.spark_jobs.deployment.rates import measured
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.schema import spark_type
from sweeparea.tables.publication.deployed import Deployed
from sweeparea.tables.publication.ledger import LedgerRow


class QueryPlans:
    """Binds queries over what is declared and admitted, as they were registered. Schemas of results, rates and what is
    proposed are kept.
    """

    def __init__(self, declared: Declarations, sources: Sources, deployed: Deployed) -> None:
        self.declared, self.sources, self.deployed = declared, sources, deployed
        self._schemas: dict[str, InputSchema] = {}
        self._rates: dict[str, dict[str, MeasuredInput] | None] = {}
        self._proposed: dict[str, Planned] = {}

    # -- columns and tables of what is read ----------------------------------------------------------------------------

    def input_schema(self, name: str) -> InputSchema:
        """Columns, types and time of an input, from what was admitted, else from its source or its query's plan."""
        # one after the other, since a chain of queries may be longer than Python's calls may nest
        for each in self.queries_under(name):
            owner = self.declared.owner(each)
            if each not in self._schemas and (owner != each or self.declared.is_query(each)):
                own = self._query_schema(each) if owner == each else self._materialization_schema(each, owner)
                self._schemas[each] = own
        return self._schemas[name] if name in self._schemas else self.sources.schema(name)

    def queries_under(self, name: str) -> list[str]:
        """An input behind those that it rests on, as far as the schemas of the queries are not known; each after what
        it reads.
        """
        catalog = self.declared.catalog

        def read_by(each: str) -> tuple[str, ...]:
            owner = self.declared.owner(each)
            known = each in self._schemas or owner not in catalog.queries or owner in catalog.cycles
            return () if known else catalog.inputs(owner)

        return [*bottom_up(name, read_by)]

    def forget_schemas(self) -> None:
        """Schemas are read anew: an input has changed its columns."""
        self.sources.forget()
        self._schemas.clear()

    def _query_schema(self, name: str) -> InputSchema:
        plan = self.plan(name) if is_hidden(name) else self.whole(name)
        columns = [(c.label, c.type) for c in plan.root.columns]
        result = DeltaLog(self.declared.layout.result(name))
        if result.exists():
            types = {f.name: spark_type(f.type) for f in result.schema()}
            columns = [(label, types.get(label, kind)) for label, kind in columns]
        kind = SchemaKind.STREAM if plan.stream else SchemaKind.RELATION
        return InputSchema(name, kind, tuple(columns), plan.time, derived=True, chars=plan.chars)

    def _materialization_schema(self, name: str, query: str) -> InputSchema:
        """The schema of ``q__istream`` and its like: the query's columns under another kind of table."""
        plan, kind = self.whole(query), name.rpartition("__")[2]
        if kind not in (plan.kind, *plan.materialize):
            kept = ", ".join(k.upper() for k in plan.materialize)
            declared = self.declared.catalog.queries.get(query)
            raise BindError(
                f"{name} is not kept: {query} materializes {kept}",
                getattr(declared, "place", None),
                f"Write MATERIALIZE {kept}, {kind.upper()} in {query}, or read {query} itself",
            )
        own = self.input_schema(query)
        return replace(own, name=name, kind=SchemaKind.RELATION if kind == ResultKind.RELATION else SchemaKind.STREAM)

    def result_table(self, name: str) -> str:
        """The folder of a query's result, or of one of its materializations."""
        owner = self.declared.owner(name)
        kind = name.rpartition("__")[2]
        return self.declared.layout.result(owner if owner != name and kind == self.plan(owner).kind else name)

    # -- plans ---------------------------------------------------------------------------------------------------------

    def plan(self, name: str) -> Plan:
        """The plan of a query as it is run: over the hidden queries that it shares, or a hidden query's own."""
        if is_hidden(name):
            return self._hidden_plan(name)
        plan = self.whole(name)
        return take(plan, self.planned(name).shared)

    def whole(self, name: str, measured: Mapping[str, MeasuredInput] | None = None) -> Plan:
        """The plan of a query over its declared inputs, whatever it shares with others. ``measured`` stands in for the
        rates of inputs that it was registered with.
        """
        if name in self.declared.catalog.cycles:
            raise self.declared.catalog.cycles[name]
        if is_hidden(name):
            return self._hidden_plan(name)
        query = self.declared.query(name)
        known = self.rates_of(name) if measured is None else measured
        return self.bind(query, self.declared.catalog.settings, known, self.columns_of(name))

    def _hidden_plan(self, name: str) -> Plan:
        """Made from any query that reads it: all give the same."""
        for query in self.declared.catalog.queries:
            try:
                plan = hidden_query(self.whole(query), name) if name in self.planned(query).shared else None
            except SweepAreaError:
                continue  # a reader that cannot be bound; there may be others
            if plan is not None:
                return plan
        raise SweepAreaError(
            f"{name} computes a subplan that queries shared, but no query of the files has that subplan any more, so it"
            " is not run. Declare its readers again, or let"
            f" `{self.declared.command('apply', '--prune')}` drop them and it."
        )

    def hidden(self, name: str) -> tuple[str, ...]:
        """The hidden queries that a query reads; they have to be processed before it."""
        return () if is_hidden(name) else hidden_inputs(self.plan(name))

    def bind(
        self,
        query: CreateQuery,
        settings: Mapping[str, str],
        measured: Mapping[str, MeasuredInput] | None = None,
        columns: Mapping[str, tuple[str, ...]] | None = None,
    ) -> Plan:
        """The plan of a query over this application's streams, relations and queries. ``measured`` are rates of its
        inputs, ``columns`` those that it knows of inputs which have gained others.
        """
        self.declared.catalog.check_names(query)
        inputs = {i: self.input_schema(i) for i in self.declared.catalog.inputs(query)}
        for name, known in (columns or {}).items():
            if name in inputs:
                kept = tuple((column, kind) for column, kind in inputs[name].columns if column in known)
                inputs[name] = replace(inputs[name], columns=kept)
        return bind(query, inputs, settings, self.declared.functions, self.declared.analyze, measured)

    def rests_on(self, query: str) -> tuple[str, ...]:
        """A query and the names whose definitions its results rest on: what it reads, and the functions it calls."""
        plan = self.plan(query)
        functions = [f.name for f in plan.functions if f.name in self.declared.catalog.functions]
        return tuple(dict.fromkeys((query, *map(self.declared.owner, plan.inputs), *functions)))

    def heartbeats(self, plan: Plan, head: dict[str, LedgerRow]) -> dict[str, int | None]:
        """Per input the instant up to which it is known (``INF`` for static relations)."""
        from sweeparea.heartbeats.minimum import INFINITE
        from sweeparea.heartbeats.policies import last_tick_at

        found: dict[str, int | None] = {}
        for name in plan.inputs:
            row = head.get(self.declared.owner(name))
            if self.declared.is_static(name):
                found[name] = INFINITE if row else None
            elif row is None or row.committed is None:
                found[name] = None
            else:
                found[name] = last_tick_at(row.committed, self.declared.scale(name, plan.time))
        return found

    # -- what plans are chosen by --------------------------------------------------------------------------------------

    def planned(self, name: str) -> Planned:
        """What a query's plan is chosen by: as it was registered, else as it would be now."""
        row = self.deployed.rows().get(name)
        return self.fresh(name) if row is None else Planned.of(row.planned)

    def rates_of(self, name: str) -> Mapping[str, MeasuredInput]:
        """The rates that a query's plan is chosen by: those of its registration, else those of now."""
        row = self.deployed.rows().get(name)
        return (self.rates(name) if row is None else Planned.of(row.planned).inputs) or {}

    def rates(self, name: str) -> dict[str, MeasuredInput] | None:
        """The rates of a query's inputs as they are now."""
        if name not in self._rates:
            catalog = self.declared.catalog
            self._rates[name] = measured(self.declared, self.result_table, catalog.inputs(name))
        return self._rates[name]

    def forget_rates(self, query: str) -> None:
        """The rates of a query's inputs are measured anew."""
        self._rates.pop(query, None)

    def fresh(self, name: str) -> Planned:
        """What a query would be planned by if it were registered now, together with all that are not yet."""
        if name not in self._proposed:
            deployed = self.deployed.rows()
            self.propose({name, *(q for q in self.declared.catalog.queries if q not in deployed)})
        return self._proposed.get(name, Planned())

    def propose(self, free: Iterable[str]) -> dict[str, Planned]:
        """As ``fresh`` for queries that are registered together."""
        self._rates.clear()
        self._proposed |= self.proposed(free)
        return self._proposed

    def proposed(self, free: Iterable[str]) -> dict[str, Planned]:
        """What queries would be planned by if they were registered now: current rates, and the hidden queries that they
        would share among themselves and with those that stay as they are.

        A query that cannot be bound shares nothing.
        """
        free = set(free)
        inputs = {name: self.rates(name) for name in self.declared.catalog.queries if name in free}
        if not self.declared.catalog.environment.share_subplans:
            return {name: Planned(known) for name, known in inputs.items()}
        plans: dict[str, Plan] = {}
        for name, known in inputs.items():
            try:
                plans[name] = self.whole(name, known or {})
            except SweepAreaError:
                continue  # told of by whoever needs its plan
        chosen = choose(list(plans.values()), set(shared_by_others(self.deployed.rows(), free)))
        shared = dict(zip(plans, chosen, strict=True))
        return {name: Planned(known, shared.get(name, ())) for name, known in inputs.items()}

    def columns_of(self, query: str) -> Mapping[str, tuple[str, ...]]:
        """The columns of its inputs that a deployed query knows, where they have gained others since it was registered;
        none where the files hold another definition, which sees all.
        """
        row = self.deployed.rows().get(query)
        if row is None or not (columns := Planned.of(row.planned).columns):
            return {}
        return columns if self.declared.definition(query).fingerprint == row.fingerprint else {}


def hidden_inputs(plan: Plan) -> tuple[str, ...]:
    """The hidden queries that a plan reads."""
    return tuple(filter(is_hidden, plan.inputs))
