"""An application: a folder of ``.cql`` files and a data folder. What the jobs know about both, without Spark."""

from __future__ import annotations

import functools

from sweeparea.spark_jobs.declarations.declarations import Declarations
from sweeparea.spark_jobs.declarations.sources import Sources
from sweeparea.spark_jobs.deployment.query_plans import QueryPlans
from sweeparea.spark_jobs.deployment.registry import Registry
from sweeparea.tables.publication.deployed import Deployed


class Application(Declarations):
    """What the files declare, with the three parts that rest on it: ``sources`` what is behind streams and relations,
    ``plans`` how queries are computed, ``registry`` what is deployed. Who needs one part alone takes that part.
    """

    @functools.cached_property
    def sources(self) -> Sources:
        return Sources(self)

    @functools.cached_property
    def plans(self) -> QueryPlans:
        return QueryPlans(self, self.sources, Deployed(str(self.data)))

    @functools.cached_property
    def registry(self) -> Registry:
        return Registry(self, self.plans)
