from __future__ import annotations

import json

from sweeparea.spark_jobs.cases.replay import replay
from sweeparea.spark_jobs.cases.warm_up import cases


def test_what_warms_a_server_up_has_results(spark):
    """A query that fails would warm nothing, and nobody would look."""
    outcomes = list(replay(map(json.dumps, cases()), spark))
    assert [outcome for outcome in outcomes if "error" in outcome or not outcome["relation"]] == []
    assert len(outcomes) == 6
