"""What a deployment plan is made from: the files, what is deployed, the ledger; and what is found on the way."""

from __future__ import annotations

from sweeparea.cql.text.errors import CqlErrors, in_order
from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.application import Application


class PlanBasis:
    """``deployed`` and ``head`` as they were read once, for all steps; ``rebuilt``: names that are computed anew, in
    order of dependency.
    """

    def __init__(self, application: Application) -> None:
        self.application = application
        self.catalog, self.registry = application.catalog, application.registry
        self.deployed = self.registry.deployed.rows()
        self.head = application.ledger.head()
        self.rebuilt: list[str] = []
        self._problems: dict[str, SweepAreaError] = {}

    def problem(self, error: SweepAreaError) -> None:
        """Notes what is to be told, each text once."""
        for one in error.errors if isinstance(error, CqlErrors) else (error,):
            self._problems.setdefault(str(one), one)

    def source_problem(self, error: SweepAreaError, place: str) -> None:
        """Notes a fault of a source. Queries over it fail with the same words, which are not repeated for each."""
        self._problems[str(error)] = SweepAreaError(f"{place}: {error}")

    @property
    def problems(self) -> tuple[SweepAreaError, ...]:
        """All problems, in the order of the files."""
        return tuple(in_order(self._problems.values()))
