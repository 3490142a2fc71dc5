"""What admit says of its progress: complete versions, the right plural, what is left."""

from __future__ import annotations

from sweeparea.spark_jobs.admission.judging.progress import Progress, counted


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_progress_counts_complete_versions_and_what_is_left() -> None:
    clock, told = Clock(), []
    progress = Progress("orders", told.append, clock)
    progress.begins(0)
    progress.reading(0, 26, 1)
    assert told == []  # a short run says nothing before its end
    clock.now = 3.0
    progress.reading(0, 26, 100_000)
    clock.now = 4.0
    progress.begins(1)
    progress.taken(0, 26, f"{counted(1, 'row')} admitted, 0 quarantined")  # too soon after the last message
    clock.now = 6.0
    progress.taken(1, 26, f"{counted(1234, 'row')} admitted, 0 quarantined")
    progress.taken(26, 26, f"{counted(5000, 'row')} admitted, 3 quarantined")
    assert told == [
        "orders: 0 of 27 versions taken; of source version 0 100,000 rows judged so far",
        "orders: 2 of 27 versions taken, 25 left; 1,234 rows admitted, 0 quarantined",
        "orders: 27 of 27 versions taken, none left; 5,000 rows admitted, 3 quarantined",
    ]


def test_progress_counts_from_the_first_version_of_this_run() -> None:
    told: list[str] = []
    progress = Progress("orders", told.append)
    progress.begins(41)
    progress.taken(41, 41, "1 row admitted, 0 quarantined")
    assert told == ["orders: 1 of 1 version taken, none left; 1 row admitted, 0 quarantined"]
