from __future__ import annotations

import pytest

from sweeparea.infra.errors import SweepAreaError, UnfitSetupError, UsageError
from sweeparea.spark_jobs.orchestration.deployment_plan import DeploymentPlan


@pytest.mark.parametrize(
    ("problems", "code"),
    [
        ((), 0),
        ((UsageError("text"),), 2),
        ((SweepAreaError("other"),), 2),
        ((UnfitSetupError("a Turkish Spark"),), 3),
        ((UnfitSetupError("a Turkish Spark"), UsageError("text")), 2),
    ],
)
def test_a_plan_ends_as_unfit_where_that_is_all_that_is_wrong(problems: tuple[SweepAreaError, ...], code: int):
    assert DeploymentPlan("shop", "data", (), problems).exit_code == code
