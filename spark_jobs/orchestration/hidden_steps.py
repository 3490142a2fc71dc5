"""The steps of hidden queries, which compute subplans that several queries share."""

from __future__ import annotations

from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.spark_jobs.deployment.planned import Planned
from sweeparea.spark_jobs.orchestration.estimates import Estimates
from sweeparea.spark_jobs.orchestration.plan_basis import PlanBasis
from sweeparea.spark_jobs.orchestration.steps import (
    Action,
    Forget,
    Keep,
    Rebuild,
    Register,
    Renew,
    Step,
    Unchanged,
)
from sweeparea.tables.publication.name_kinds import NameKind


class HiddenSteps:
    """To be asked when the steps of all declared names are known."""

    def __init__(self, basis: PlanBasis) -> None:
        self.basis, self.estimates = basis, Estimates(basis)
        self.application, self.catalog, self.registry = basis.application, basis.catalog, basis.registry

    def placed(self, steps: list[Step], gone: list[Step]) -> tuple[list[Step], list[Step]]:
        """The steps with those of hidden queries, each before its first reader; and what no query reads any more."""
        planned = self._planned(steps)
        steps = [self._chosen_again(step, planned) for step in steps]
        left = [step.name for step in gone if isinstance(step, Keep) and step.name in self.basis.deployed]
        kept = planned | {name: Planned.of(self.basis.deployed[name].planned) for name in left}
        readers: dict[str, list[str]] = {}
        for name, own in kept.items():
            for hidden in own.shared:
                readers.setdefault(hidden, []).append(name)
        placed: list[Step] = []
        for step in steps:
            for hidden in planned.get(step.name, Planned()).shared:
                if all(hidden != other.name for other in placed):
                    placed.append(self._hidden_step(hidden, readers[hidden]))
            placed.append(step)
        there = {name for name in (*self.basis.deployed, *self.basis.head) if is_hidden(name) and self.catalog.complete}
        why = "no query reads it any more"
        orphans: list[Step] = [
            Forget(name, NameKind.SHARED, why, lost=self.estimates.lost(name))
            for name in sorted(there - readers.keys())
        ]
        return placed, orphans

    def _planned(self, steps: list[Step]) -> dict[str, Planned]:
        """By query what its plan will be chosen by: what is registered anew is chosen together."""
        anew = [s.name for s in steps if s.kind == NameKind.QUERY and self._chosen_anew(s)]
        # the results of those that are adopted come from plans that were chosen by their texts alone
        proposed = self.application.plans.propose(
            {name for name in anew if name not in self.basis.head or name in self.basis.rebuilt}
        )
        found = {
            s.name: Planned.of(self.basis.deployed[s.name].planned) for s in steps if s.name in self.basis.deployed
        }
        return found | {name: proposed[name] for name in anew if name in proposed}

    def _chosen_anew(self, step: Step) -> bool:
        """Whether nothing that was computed rests on how a query was planned."""
        if step.action in (Action.NOTHING, Action.UPDATE):
            return not self.registry.computed(self.basis.deployed[step.name], self.basis.head.get(step.name))
        return step.action in (Action.REGISTER, Action.REBUILD)

    def _chosen_again(self, step: Step, planned: dict[str, Planned]) -> Step:
        """The step of a registered query that has computed nothing and would now share other subplans."""
        if step.kind != NameKind.QUERY or step.action not in (Action.NOTHING, Action.UPDATE):
            return step
        before = Planned.of(self.basis.deployed[step.name].planned).shared
        if before == planned[step.name].shared:
            return step
        why = step.why or "nothing was computed yet, and it shares other subplans now"
        return Renew(**{**vars(step), "why": why})

    def _hidden_step(self, name: str, readers: list[str]) -> Step:
        why = f"a subplan of {', '.join(readers)}"
        if name not in self.basis.deployed:
            return Register(name, NameKind.SHARED, why)
        if name in self.basis.rebuilt:
            return Rebuild(name, NameKind.SHARED, why, lost=self.estimates.lost(name))
        return Unchanged(name, NameKind.SHARED)
