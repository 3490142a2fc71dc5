"""Faults put in on purpose: each must be noticed by the tests named with it. See ``__main__`` for how they are run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """In ``file`` the text ``old``, which stands there once, becomes ``new``.

    ``tests``: those that have to notice, fast ones first; ``why``: what the fault is.
    """

    file: str
    old: str
    new: str
    why: str
    tests: tuple[str, ...]


_BY_HAND = (
    "the_first_in_the_total_order_is_kept_and_a_kept_row_decides",
    "a_quarantined_row_makes_no_duplicates",
    "a_taken_back_row_cancels_quarantine_first_then_an_element",
    "the_bounds_of_lateness",
    "duplicates_of_any_length_of_chain",
    "of_two_deliveries_one_may_be_removed",
    "a_later_copy_with_other_columns_comes_in_where_the_kept_row_goes",
    "what_a_kept_row_hid_is_chosen_anew_along_a_chain",
    "of_equal_duplicates_the_last_is_removed_first",
    "a_duplicate_that_something_else_speaks_against_never_comes_in",
)
_ADMIT = tuple(f"tests/spark_jobs/test_admit_versions.py::test_{name}" for name in _BY_HAND)
_POLICIES = ("tests/heartbeats/test_policies.py",)
_KILLS = "tests/faults/test_kills.py::test_"
_ZOMBIES = "tests/faults/test_zombies.py::test_"
_OTHERS = "tests/faults/test_others.py::test_"
_LEFT = "tests/faults/test_left_behind.py::test_"
_COUNTS = ("tests/quality/test_counts.py",)
_PARTS = tuple(
    f"tests/spark_jobs/test_parts.py::test_{name}"
    for name in (
        "a_part_has_all_rows_of_its_keys",
        "near_rows_have_the_key_and_lie_within_reach",
        "relations_in_parts_are_those_of_the_whole",
    )
)
_AGGREGATE = ("tests/operators/test_aggregate.py",)
_VALUES = ("tests/operators/test_aggregate_values.py",)
_AREA = ("tests/operators/test_sweep_area.py",)
_ARRIVALS = tuple(f"tests/operators/test_{kind}_window.py" for kind in ("rows", "session", "condition"))
_BOUNDS = ("tests/operators/test_bounds.py",)
_ENRICH = ("tests/operators/test_enrich.py",)
_LOG = ("tests/operators/test_expiry_log.py",)
_FRAMED = ("tests/operators/test_framed.py",)
_NAVIGATION = ("tests/operators/test_navigation.py",)
_NETTING = ("tests/operators/test_netting.py",)
_SNAPSHOT = ("tests/operators/test_snapshot.py",)
_ISTREAM = ("tests/operators/test_istream.py",)
_JOIN = ("tests/operators/test_join.py",)
_NEGATIVE = ("tests/operators/test_negative_tuples.py",)
_STREAMS = ("tests/operators/test_relation_to_stream.py",)
_MEMORY = ("tests/operators/test_worker_memory.py",)
_TOP_K = ("tests/operators/test_top_k.py",)
_COUNTED = ("two_counts", "difference", "intersect", "distinct", "negation")
_TWO = tuple(f"tests/operators/test_{name}.py" for name in _COUNTED)
_WINDOWS = ("tests/operators/test_time_windows.py",)
_BUCKETS = ("tests/operators/test_bucket_windows.py",)
_REPLAY = "tests/replay/test_cases.py::test_the_engine_agrees"
_HELD = (f"{_REPLAY}[held_at_the_edge]",)
_TASKS = ("tests/replay/test_many_slices.py::test_no_task_runs_a_sweep_for_two_of_its_workers",)
_ENDS = ("tests/replay/test_expansion.py::test_the_ends_of_one_order_forget_different_elements",)
_JOINS = (*_HELD, f"{_REPLAY}[join_side_waits]", f"{_REPLAY}[inputs_advance_apart]")

MUTANTS = (
    # -- bounds of intervals: < and <=
    Mutant(
        "operators/kernels/two_counts.py",
        "since[top] <= published",
        "since[top] < published",
        "a level published at h0 ends as if it were new",
        _TWO,
    ),
    Mutant(
        "operators/kernels/two_counts.py",
        "if since[j] > published:",
        "if since[j] >= published:",
        "a level that was published is published again",
        _TWO,
    ),
    Mutant(
        "operators/kernels/two_counts.py",
        "and t <= last:",
        "and t < last:",
        "a count below zero at the last instant of a slice passes",
        _TWO,
    ),
    Mutant(
        "operators/kernels/instants.py",
        "if tick > last:",
        "if tick >= last:",
        "nothing happens at the last instant of a slice",
        (*_AGGREGATE, *_TWO),
    ),
    Mutant(
        "operators/kernels/instants.py",
        "while j < b and end[by_end[j]] == tick:",
        "while j < b and end[by_end[j]] == tick - 1:",
        "an expiry is noticed one instant late",
        (*_AGGREGATE, *_TWO),
    ),
    Mutant(
        "operators/kernels/aggregate.py",
        "best = min(best, least[i])",
        "best = max(best, least[i])",
        "pending elements that an earlier one outlasts are kept",
        (*_AGGREGATE, *_BOUNDS),
    ),
    Mutant(
        "operators/kernels/aggregate.py",
        "if rank[row] < best:\n                    best = rank[row]",
        "if rank[row] <= best:\n                    best = rank[row]",
        "of equal elements all are kept",
        (*_AGGREGATE, *_BOUNDS),
    ),
    Mutant(
        "operators/kernels/aggregate.py",
        "old = tick[s] == published",
        "old = False",
        "what an earlier slice has published never ends",
        _AGGREGATE,
    ),
    Mutant(
        "operators/kernels/arrivals.py",
        "while d < hi and last[d] < leaves:",
        "while d < hi and last[d] <= leaves:",
        "an element stays one arrival too long",
        _ARRIVALS,
    ),
    Mutant(
        "operators/kernels/arrivals.py",
        "while e < hi and last[e] < enters:",
        "while e < hi and last[e] <= enters:",
        "an element enters one arrival too late",
        _ARRIVALS,
    ),
    Mutant(
        "operators/kernels/relation_to_stream.py",
        "if copies[top] == 0:\n                    depth = top",
        "if copies[top] == 0:\n                    depth = top + 1",
        "levels that are closed stay open",
        _STREAMS,
    ),
    Mutant(
        "operators/kernels/top_k.py",
        "if new_high != high:",
        "if new_high < high:",
        "a row that enters behind the last one shown is not looked at",
        _TOP_K,
    ),
    Mutant(
        "operators/kernels/top_k.py",
        "whole = (rows != 0 and shown",
        "whole = (rows > 0 and shown",
        "ranks that go down are not told",
        _TOP_K,
    ),
    Mutant(
        "operators/kernels/top_k.py",
        "kept[i] = size < most or heap[0] < end[i]",
        "kept[i] = size < most or heap[0] <= end[i]",
        "what ends with those that dominate it is kept",
        _TOP_K,
    ),
    Mutant(
        "operators/kernels/top_k.py",
        "if not now[b]:",
        "if now[b] and end[b] < 0:",
        "a row that has still to begin counts as if it were there",
        _TOP_K,
    ),
    Mutant(
        "operators/kernels/compiled.py",
        "FunctionIdentity._unique_ids = itertools.count(secrets.randbits(60))",
        "itertools.count(secrets.randbits(60))",
        "inner functions of two compiled functions have one name",
        ("tests/operators/test_compiled.py",),
    ),
    Mutant(
        "operators/kernels/navigation.py",
        "high = first + at_place[base + p] + ahead",
        "high = first + ahead",
        "a row behind several equal ones that change keeps what it referred to",
        _NAVIGATION,
    ),
    Mutant(
        "operators/kernels/navigation.py",
        "if first < from_start or",
        "if first + 1 < from_start or",
        "another first row of a group is not told to the rows that show it",
        _NAVIGATION,
    ),
    Mutant(
        "operators/kernels/framed.py",
        "kept.touched[place] == segment:\n        return False",
        "kept.touched[place] == segment:\n        return True",
        "frames behind two rows that come together keep what they held",
        _FRAMED,
    ),
    Mutant(
        "operators/kernels/framed.py",
        "if kept.at_place[place] > 0:\n            lines = _tell(kept, place, segment, -kept",
        "if kept.at_place[place] > 1:\n            lines = _tell(kept, place, segment, -kept",
        "what a row showed is not taken back",
        _FRAMED,
    ),
    Mutant(
        "operators/kernels/framed.py",
        "return found > group.base + c if ahead else",
        "return True if ahead else",
        "the second last row that counts is taken for settled before the change lies behind it",
        _FRAMED,
    ),
    Mutant(
        "operators/kernels/framed.py",
        "until = min(rows, at[j] + ahead + 1)",
        "until = min(rows, at[j] + ahead)",
        "the last row whose counted frame holds a change is not looked at",
        _FRAMED,
    ),
    Mutant(
        "operators/kernels/framed.py",
        "number = low + calls[i, SKIP] if",
        "number = low + calls[i, SKIP] + 1 if",
        "the row behind the one that is picked",
        _FRAMED,
    ),
    Mutant(
        "operators/kernels/framed.py",
        "if was != (kept.at_place[place] > 0):",
        "if not was:",
        "what has gone still counts for MIN and MAX",
        _FRAMED,
    ),
    Mutant(
        "operators/kernels/sums/digits.py",
        "found[i, 3] = high[i] & _MASK, high[i] >> 32",
        "found[i, 3] = high[i] & _MASK, (high[i] >> 32) & _MASK",
        "negative integers are added as positive ones",
        _FRAMED,
    ),
    Mutant(
        "operators/kernels/sums/digits.py",
        "found[i, k + 2] = sign * (",
        "found[i, k + 2] = (",
        "the high bits of negative numbers are added",
        _FRAMED,
    ),
    Mutant(
        "operators/ordered/framed.py",
        "rank[there].min() - 1 if edge.preceding",
        "rank[there].max() + 1 if edge.preceding",
        "a frame that begins before all keys is empty",
        _FRAMED,
    ),
    Mutant(
        "operators/aggregates/user_values.py",
        "            if opens:\n",
        "            if s == 0:\n",
        "a group's state begins with that of the group before",
        ("tests/operators/test_aggregate_values.py",),
    ),
    Mutant(
        "operators/aggregates/user_values.py",
        "self.known.clear()",
        "self.known.pop((0, 0), None)",
        "values of a user's frames stay what they were",
        _FRAMED,
    ),
    Mutant(
        "cql/rewrites/ranks.py",
        "math.ceil(value) - 1 if kind is exp.LT",
        "math.ceil(value) if kind is exp.LT",
        "a rank below a number is taken for one up to it",
        ("tests/cql/test_ranks.py",),
    ),
    Mutant(
        "cql/rewrites/ranks.py",
        "Numbers(1, found.low - 1) if found.high is None else ANY",
        "Numbers(1, found.low - 1, found.high is None)",
        "of the numbers outside of an interval those above it are lost",
        ("tests/cql/test_ranks.py",),
    ),
    Mutant(
        "operators/sweeps/relation_to_stream.py",
        "now = changes[:, changes[1] <= h1]",
        "now = changes[:, changes[1] < h1]",
        "changes at h1 are lost",
        _STREAMS,
    ),
    Mutant(
        "operators/sweeps/relation_to_stream.py",
        "future = changes[:, changes[1] > h1]",
        "future = changes[:, changes[1] >= h1]",
        "changes at h1 are told twice",
        _STREAMS,
    ),
    Mutant(
        "operators/sweeps/relation_to_stream.py",
        "old = start <= h0",
        "old = start < h0",
        "a level open since h0 is new again",
        _STREAMS,
    ),
    Mutant(
        "operators/windows/session_window.py",
        "tick[1:] - tick[:-1] >= spec.gap",
        "tick[1:] - tick[:-1] > spec.gap",
        "a gap of exactly G does not end the session",
        _ARRIVALS,
    ),
    Mutant(
        "operators/windows/session_window.py",
        "closed = np.flatnonzero(closes <= h1)",
        "closed = np.flatnonzero(closes < h1)",
        "a session that closes at h1 is lost",
        _ARRIVALS,
    ),
    Mutant(
        "operators/windows/arrivals.py",
        "(visits.enter > h0) &",
        "(visits.enter >= h0) &",
        "what entered at h0 enters again",
        _ARRIVALS,
    ),
    Mutant(
        "operators/windows/arrivals.py",
        "(visits.leave <= h1) & (visits.leave < end)",
        "(visits.leave <= h1) & (visits.leave <= end)",
        "an element leaves a second time, empty, at the instant of its end",
        (*_ARRIVALS, *_BOUNDS),
    ),
    Mutant(
        "operators/windows/negative_tuples.py",
        "(start > h0) & (start <= h1)",
        "(start >= h0) & (start <= h1)",
        "what began at h0 is told again",
        _NEGATIVE,
    ),
    Mutant(
        "operators/windows/negative_tuples.py",
        "(end > h0) & (end <= h1)",
        "(end > h0) & (end < h1)",
        "what ends at h1 never ends",
        _NEGATIVE,
    ),
    Mutant(
        "operators/ordered/snapshot.py",
        "inside = tick > self.h0",
        "inside = tick >= self.h0",
        "what has been evaluated at h0 is evaluated again",
        _SNAPSHOT,
    ),
    Mutant(
        "operators/ordered/snapshot.py",
        "np.flatnonzero(self.end <= self.h1)",
        "np.flatnonzero(self.end < self.h1)",
        "expiry at h1 is not expanded",
        _SNAPSHOT,
    ),
    Mutant(
        "operators/state/expiry_log.py",
        "if file.last <= h + 1]",
        "if file.last <= h + 2]",
        "a file goes one instant early",
        _LOG,
    ),
    Mutant(
        "operators/state/expiry_log.py",
        "live = np.flatnonzero(end > h1 + 1)",
        "live = np.flatnonzero(end > h1 + 2)",
        "a row that is valid for one instant more is not logged",
        _LOG,
    ),
    Mutant(
        "operators/state/area_files.py",
        "if self.file.due > h1 else",
        "if self.file.due >= h1 else",
        "what is due at h1 is not looked at",
        _AREA,
    ),
    Mutant(
        "operators/state/area_files.py",
        "[(due > h0) & (due <= h1)]",
        "[(due > h0) & (due < h1)]",
        "what is due at h1 is not looked at",
        _AREA,
    ),
    Mutant(
        "operators/state/area_files.py",
        "np.flatnonzero((low <= h1) & (high > h0))",
        "np.flatnonzero((low > h0) & (high <= h1))",
        "a row group in which only some rows are due is not looked at",
        _AREA,
    ),
    Mutant(
        "operators/state/area_files.py",
        'np.searchsorted(hashes, high, "right") > np.searchsorted(hashes, low, "left")',
        'np.searchsorted(hashes, high, "left") > np.searchsorted(hashes, low, "left")',
        "a key whose hash is the greatest of its row group is not found",
        _AREA,
    ),
    Mutant(
        "operators/sweeps/istream.py",
        "np.append(n, -n[ends])",
        "np.append(n, n[ends])",
        "a row that ends is told as one that begins",
        _ISTREAM,
    ),
    Mutant(
        "operators/sweeps/enrich.py",
        'f"{FROM} < {TS} AND {TS} <= {TO}"',
        'f"{FROM} <= {TS} AND {TS} < {TO}"',
        "an element sees the changes of its own instant",
        (
            "tests/replay/test_enrich.py::test_enriched_elements",
            "tests/replay/test_enrich.py::test_the_example_of_the_documentation",
        ),
    ),
    Mutant(
        "operators/sweeps/join.py",
        'f"least(__lte, __rte) AS {TE}"',
        'f"greatest(__lte, __rte) AS {TE}"',
        "a match outlives one of its parts",
        (*_JOIN, *_HELD),
    ),
    Mutant(
        "operators/windows/time_windows.py",
        "return s, end_of(s, self.length)\n",
        "return s, end_of(s, self.length + 1)\n",
        "a range is one instant too long",
        _WINDOWS,
    ),
    Mutant(
        "operators/windows/time_windows.py",
        "if ts > MAX_TICK or ts >= te:",
        "if ts > MAX_TICK or ts > te:",
        "an element that no hop sees is valid",
        _WINDOWS,
    ),
    Mutant(
        "operators/windows/bucket_windows.py",
        "te = hop_at_or_after(s + 1, self.length, self.anchor)",
        "te = hop_at_or_after(s, self.length, self.anchor)",
        "an element at the edge of a fixed window is not in the next one",
        _BUCKETS,
    ),
    Mutant(
        "spark_jobs/evaluation/inputs.py",
        "max(self.start, self.h0 - reach)",
        "max(self.start, self.h0 - reach + 3)",
        "the oldest elements that a window still holds are not read again",
        _HELD,
    ),
    Mutant(
        "spark_jobs/evaluation/inputs.py",
        "low = max(self.h0 + 1, self.start)",
        "low = max(self.h0, self.start)",
        "elements at h0 are new again",
        _HELD,
    ),
    Mutant(
        "spark_jobs/evaluation/inputs.py",
        "low = None if self.first else self.h0 + 1",
        "low = None if self.first else self.h0",
        "changes at h0 are new again",
        _JOINS,
    ),
    Mutant(
        "spark_jobs/evaluation/inputs.py",
        '[("__tick", *source.own(None, self.h0)), ("__seq", None, source.pin)]',
        '[("__tick", *source.own(None, self.h0 - 1)), ("__seq", None, source.pin)]',
        "the contents at h0 lack the changes at h0",
        _HELD,
    ),
    Mutant(
        "spark_jobs/evaluation/areas.py",
        "if _logged(file).last > h + 1]",
        "if _logged(file).last > h + 2]",
        "held rows that are valid for one instant more are not read",
        _HELD,
    ),
    Mutant(
        "spark_jobs/evaluation/areas.py",
        "[(TE, h + 2, None)]",
        "[(TE, h + 3, None)]",
        "held rows that are valid for one instant more are not read",
        _HELD,
    ),
    Mutant(
        "operators/state/area_files.py",
        "return self.due <= h1",
        "return self.due < h1",
        "a slice without new rows does not look at what is due at its end",
        (*_AREA, *_HELD),
    ),
    Mutant(
        "operators/state/area_files.py",
        "if self.due > h0:",
        "if self.due != h0:",
        "a slice without new rows does not look at what is due later than the first row of a file",
        _AREA,
    ),
    # -- ts and te changed
    Mutant(
        "operators/kernels/two_counts.py",
        "k, s, since[top], t, gone)",
        "k, s, since[top], since[top], gone)",
        "ts for te",
        _TWO,
    ),
    Mutant(
        "operators/kernels/aggregate.py",
        "ts[k] = tick[s] if old else since\n                te[k] = INF if old else tick[s]",
        "te[k] = tick[s] if old else since\n                ts[k] = INF if old else tick[s]",
        "ts and te swapped",
        _AGGREGATE,
    ),
    Mutant(
        "operators/kernels/relation_to_stream.py",
        "closed[1, closed_count] = since[top]\n                closed[2, closed_count] = tick[i]",
        "closed[2, closed_count] = since[top]\n                closed[1, closed_count] = tick[i]",
        "ts and te swapped",
        _STREAMS,
    ),
    Mutant(
        "operators/sweeps/relation_to_stream.py",
        "np.concatenate([start[begins], end[ends]])",
        "np.concatenate([end[begins], start[ends]])",
        "ts and te swapped",
        _STREAMS,
    ),
    Mutant(
        "operators/values/netting.py",
        "columns = {TS: start[head], TE: end[head],",
        "columns = {TE: start[head], TS: end[head],",
        "ts and te swapped",
        _NETTING,
    ),
    Mutant(
        "operators/ordered/snapshot.py",
        "Alive(record, start[row[span]], end[row[span]], n)",
        "Alive(record, end[row[span]], start[row[span]], n)",
        "ts and te swapped",
        _SNAPSHOT,
    ),
    Mutant(
        "operators/sweeps/aggregate.py",
        "known |= {TS: pa.array(start), TE: pa.array(te),",
        "known |= {TE: pa.array(start), TS: pa.array(te),",
        "ts and te swapped",
        _AGGREGATE,
    ),
    Mutant(
        "operators/windows/arrivals.py",
        "te = np.concatenate([until[comes], end[goes]])",
        "te = np.concatenate([visits.enter[comes], end[goes]])",
        "ts for te",
        _ARRIVALS,
    ),
    Mutant(
        "operators/windows/negative_tuples.py",
        "TS: np.append(start[begins], end[ends])",
        "TS: np.append(start[begins], start[ends])",
        "ts for te",
        _NEGATIVE,
    ),
    Mutant(
        "operators/windows/session_window.py",
        "(tick[start[number[closed]]], ticks + 1, ticks, ticks + 1, elements.n[closed])",
        "(tick[start[number[closed]]], ticks + 1, ticks + 1, ticks, elements.n[closed])",
        "ts and te swapped",
        _ARRIVALS,
    ),
    Mutant(
        "operators/sweeps/join.py",
        'f"greatest(__lts, __rts) AS {TS}",\n        f"least(__lte, __rte) AS {TE}"',
        'f"greatest(__lts, __rts) AS {TE}",\n        f"least(__lte, __rte) AS {TS}"',
        "ts and te swapped",
        (*_JOIN, *_HELD),
    ),
    Mutant(
        "operators/state/due.py",
        "return np.where(start > h1, start, end)",
        "return np.where(start > h1, end, start)",
        "ts and te swapped",
        _AREA,
    ),
    # -- compaction
    Mutant(
        "operators/values/netting.py",
        "head = first[net != 0]",
        "head = first[net == net]",
        "rows that cancel are kept",
        (*_NETTING, *_BOUNDS),
    ),
    Mutant(
        "operators/values/netting.py",
        "live = np.flatnonzero((end > h1 + 1) &",
        "live = np.flatnonzero((end > h1 - 9) &",
        "what has expired is kept",
        (*_NETTING, *_BOUNDS),
    ),
    Mutant(
        "operators/values/netting.py",
        "left = sums != 0",
        "left = sums == sums",
        "changes of nothing are kept",
        (*_TWO, *_NETTING),
    ),
    Mutant(
        "operators/sweeps/aggregate.py",
        "return table if nonzero.all() else table.filter(pa.array(nonzero))",
        "return table",
        "sums of nothing are kept",
        _AGGREGATE,
    ),
    Mutant(
        "operators/sweeps/aggregate.py",
        "head, n = rows[first[:-1]][n != 0], n[n != 0]",
        "head, n = rows[first[:-1]], n",
        "values that have been taken away are kept",
        (*_AGGREGATE, *_VALUES),
    ),
    Mutant(
        "operators/sweeps/aggregate.py",
        "return rows[kernel.undominated(order, group, start, te, ranks)]",
        "return rows[order]",
        "dominated elements are kept",
        (*_AGGREGATE, *_VALUES),
    ),
    Mutant(
        "operators/sweeps/aggregate.py",
        "at, start, te = kernel.united(sorting.sorted_order((value, start)), value, start, self.te[rows])",
        "at, te = sorting.sorted_order((value, start)), self.te[rows]\n        start, te = start[at], te[at]",
        "presence is kept as every interval",
        _AGGREGATE,
    ),
    Mutant(
        "operators/sweeps/two_counts.py",
        "row, start, end = united(sorted_order((group, start)), group, start, end)",
        "row = sorted_order((group, start))\n            start, end = start[row], end[row]",
        "DISTINCT keeps every interval",
        _TWO,
    ),
    Mutant(
        "operators/kernels/aggregate.py",
        "start[at] <= until[k]",
        "start[at] < until[k]",
        "intervals of presence that touch are kept apart",
        (*_AGGREGATE, *_TWO),
    ),
    Mutant(
        "operators/state/expiry_log.py",
        "elif touching:",
        "elif False:",
        "pieces of what DISTINCT lengthens are never joined up",
        _LOG,
    ),
    Mutant(
        "operators/bridge.py",
        "net_changes(new) if self.delta else new",
        "new",
        "a join is given records that end as equal ones begin",
        _LOG,
    ),
    Mutant(
        "operators/windows/rows_window.py",
        "stays = leave > h1\n",
        "stays = leave > h1 - 9\n",
        "elements that have left are kept",
        _ARRIVALS,
    ),
    Mutant(
        "operators/windows/rows_window.py",
        "stays &= end > h1 + 1",
        "stays &= end > 0",
        "elements that Range has ended are kept",
        (*_ARRIVALS, *_BOUNDS),
    ),
    Mutant(
        "operators/windows/session_window.py",
        "elements.row[closes > h1]",
        "elements.row[closes > h1 - 9]",
        "sessions that are closed are kept",
        _ARRIVALS,
    ),
    Mutant(
        "operators/ordered/snapshot.py",
        "alive = np.flatnonzero(self.end > self.h1)",
        "alive = np.flatnonzero(self.end > self.h0)",
        "what has expired is kept",
        (*_SNAPSHOT, *_BOUNDS),
    ),
    Mutant(
        "operators/sweeps/enrich.py",
        "opened = out.carry",
        "opened = pa.concat_tables([out.carry, rows.select(out.carry.column_names).slice(0, 1)])",
        "a change that has been counted is kept",
        _ENRICH,
    ),
    Mutant(
        "operators/state/area_files.py",
        "return count if count >= _RUNS else 0",
        "return 0",
        "files are never merged",
        (*_AREA, *_LOG),
    ),
    Mutant(
        "operators/state/sweep_area.py",
        "kept[at] = seq[at] == newest[code]",
        "kept[at] = True",
        "a merge keeps what was replaced",
        _AREA,
    ),
    Mutant(
        "operators/state/sweep_area.py",
        "        if whole:\n            kept &= _alive(rows)",
        "        kept &= _alive(rows)",
        "a merge of some files forgets that keys are gone, and older rows come back",
        _AREA,
    ),
    Mutant(
        "operators/state/sweep_area.py",
        "        if whole:\n            kept &= _alive(rows)\n",
        "",
        "keys that are gone are never forgotten",
        (*_AREA, *_BOUNDS),
    ),
    Mutant(
        "operators/state/sweep_area.py",
        "parts.append(self._laid_out(_widened(gone, self.schema), None))",
        "del gone",
        "nothing says that a key is gone, and its rows come back",
        _AREA,
    ),
    Mutant(
        "operators/state/sweep_area.py",
        "cuts[step + 1] - 1)) is not None]",
        "cuts[step + 1] - 2)) is not None]",
        "a merge loses the greatest hash of each share",
        _AREA,
    ),
    Mutant(
        "operators/state/expiry_log.py",
        "if net:\n        rows = compacted(rows, h1)",
        "if not net:\n        rows = compacted(rows, h1)",
        "a join's side keeps negative tuples with what they take away",
        _LOG,
    ),
    Mutant(
        "operators/state/area_files.py",
        "sum(rows) > _SPARE * live + _SLACK",
        "sum(rows) > _SPARE * live + _SLACK + 9999",
        "what a burst left stays while little comes after it",
        _AREA,
    ),
    Mutant(
        "operators/state/area_files.py",
        "return file.rows - gone - int(",
        "return file.rows - int(",
        "keys that are gone count as rows",
        _AREA,
    ),
    # -- multiplicities
    Mutant(
        "operators/kernels/two_counts.py",
        "return np.int64(1) if a > 0 and b == 0",
        "return np.int64(1) if a >= 0 and b == 0",
        "EXCEPT shows what is not there",
        _TWO,
    ),
    Mutant(
        "operators/kernels/two_counts.py",
        "w = signed(e, n[row])",
        "w = n[row]",
        "an end counts like a beginning",
        _TWO,
    ),
    Mutant(
        "operators/sweeps/join.py",
        "__ln * __rn AS {N}",
        "greatest(__ln, __rn) AS {N}",
        "counts do not multiply",
        (*_JOIN, f"{_REPLAY}[self_join_multiplies]", *_HELD),
    ),
    Mutant(
        "operators/sweeps/relation_to_stream.py",
        "minus = now[:, now[2] < 0]",
        "minus = now[:, now[2] <= -2]",
        "the Dstream lacks single copies",
        _STREAMS,
    ),
    # -- admit: duplicates, lateness, rows taken back, heartbeats
    Mutant(
        "spark_jobs/admission/judging/duplicates.py",
        "| (t[1:] - t[:-1] > within)",
        "| (t[1:] - t[:-1] >= within)",
        "a row at the very end of WITHIN is no duplicate",
        _ADMIT,
    ),
    Mutant(
        "spark_jobs/admission/judging/duplicates.py",
        "return by[starts[np.add.reduceat(n[by], starts) > 0]]",
        "return by[starts]",
        "a row that was taken back still makes duplicates",
        _ADMIT,
    ),
    Mutant(
        "spark_jobs/admission/judging/duplicates.py",
        "        elif stands[m]:\n",
        "        else:\n",
        "a quarantined row makes duplicates",
        _ADMIT,
    ),
    Mutant(
        "spark_jobs/admission/judging/judge.py",
        "pc.less(tick, h - self.within)",
        "pc.less_equal(tick, h - self.within)",
        "a row exactly WITHIN below the heartbeat is not repaired",
        _ADMIT,
    ),
    Mutant(
        "spark_jobs/admission/judging/judge.py",
        "pc.less_equal(tick, h), LATE",
        "pc.less(tick, h), LATE",
        "a row at the heartbeat is not late",
        _ADMIT,
    ),
    Mutant(
        "spark_jobs/admission/stream/taken_back.py",
        "found = in_admitted(stage.admitted, removed, columns, left)",
        "found = in_admitted(stage.admitted, removed, columns, wanted)",
        "a row is taken back from the quarantine and from the elements",
        _ADMIT,
    ),
    Mutant(
        "spark_jobs/admission/stream/taken_back.py",
        "sorted(hits, reverse=True)",
        "sorted(hits)",
        "of equal rows of the quarantine the first one leaves it",
        _ADMIT,
    ),
    Mutant(
        "spark_jobs/admission/stream/reinstated.py",
        "kept[place] & (rank[place] < own)",
        "kept[place] & (rank[place] != own)",
        "an element that came later keeps a duplicate out",
        _ADMIT,
    ),
    Mutant(
        "spark_jobs/admission/stream/reinstated.py",
        "            ask(int(tick[i]), own)",
        "            pass",
        "a duplicate that comes in makes no other row one",
        _ADMIT,
    ),
    Mutant(
        "spark_jobs/admission/stream/reinstated.py",
        "rules.duplicate_by, reach - 2 * rules.apart)",
        "rules.duplicate_by, reach)",
        "a chain of duplicates is followed too short",
        _ADMIT,
    ),
    Mutant(
        "spark_jobs/admission/stream/reinstated.py",
        'pc.equal(held.column("__reason"), DUPLICATE)',
        'pc.starts_with(held.column("__reason"), DUPLICATE)',
        "a duplicate comes in that would have been too late",
        _ADMIT,
    ),
    Mutant(
        "spark_jobs/admission/judging/state.py",
        "ticks_min <= self.heartbeat",
        "ticks_min < self.heartbeat",
        "a repaired row at the heartbeat is no correction",
        _ADMIT,
    ),
    Mutant(
        "heartbeats/per_source.py",
        "now - last < self.idle",
        "now - last <= self.idle",
        "a source is idle too late",
        _POLICIES,
    ),
    Mutant(
        "heartbeats/per_source.py",
        "or value[0] > h}",
        "or value[0] > h + 1}",
        "an idle source is forgotten that still holds the heartbeat back when it returns",
        _POLICIES,
    ),
    # -- one commit, whoever is killed, suspended or in a hurry
    Mutant(
        "tables/publication/ledger.py",
        "if moved or (own is not None and expected_attempt not in (None, own.attempt)):",
        "if moved:",
        "a run of a name that was dropped goes on with one that was made anew",
        (f"{_ZOMBIES}a_name_that_was_dropped_and_made_anew_is_another_one",),
    ),
    Mutant(
        "tables/publication/ledger.py",
        "if own is None and self.used(row.app):",
        "if False:",
        "a name that was dropped comes back with a run that was left over",
        (f"{_ZOMBIES}one_that_was_dropped_for_good_does_not_come_back",),
    ),
    Mutant(
        "tables/publication/publish.py",
        "self._check_state(log.uri, relative, previous_seq)",
        "pass",
        "a table that lost commits, or has more than the ledger, is gone on with",
        (f"{_OTHERS}a_table_older_than_the_ledger_is_refused", f"{_OTHERS}a_table_newer_than_the_ledger_is_refused"),
    ),
    Mutant(
        "tables/publication/publish.py",
        "if applied is not None and applied >= row.seq:",
        "if applied is not None and applied > row.seq:",
        "a commit is applied twice",
        (f"{_KILLS}killed_at_the_points_of_a_later_run",),
    ),
    Mutant(
        "tables/publication/publish.py",
        "return State.APPLIED if (ledger.applied_seq(row) or 0) >= row.seq else State.COMMITTED",
        "return State.APPLIED if (ledger.applied_seq(row) or 1) >= row.seq else State.COMMITTED",
        "a first commit that was not applied is taken for applied",
        (f"{_KILLS}killed_at_the_points_of_a_first_run",),
    ),
    Mutant(
        "tables/publication/attempts.py",
        'if not committed(found["attempt"]):',
        "if True:",
        "what a dead run has committed is removed as if it had not",
        (f"{_KILLS}an_attempt_that_was_committed_is_never_removed",),
    ),
    Mutant(
        "tables/publication/snapshot.py",
        "if (log.app_version(app, version) or 0) <= seq:",
        "if True:",
        "a reader sees one table of a slice before the other",
        (f"{_OTHERS}a_version_that_an_optimize_replaced_is_not_needed_any_more",),
    ),
    Mutant(
        "tables/log/delta_log.py",
        "self._sync(base_version + 1)",
        "pass",
        "a power cut takes a commit and leaves what rests on it",
        (f"{_LEFT}each_step_is_on_the_disk_before_the_next_rests_on_it",),
    ),
    Mutant(
        "spark_jobs/evaluation/sweeping.py",
        "by = keys if workers == self._slice.partitions else ()",
        "by = keys",
        "one worker's task runs the sweeps below it, too",
        _TASKS,
    ),
    Mutant(
        "spark_jobs/evaluation/sweeping.py",
        "if self._slice.partitions == 1 or not self._slice.areas.staged:",
        "if self._slice.areas is not None:",
        "a task runs a sweep for several of its workers",
        _TASKS,
    ),
    Mutant(
        "spark_jobs/evaluation/grouped/grouping.py",
        "own = _STATES.get(self.function, (self.function, self.order))",
        "own = _STATES.get(self.function, self.function)",
        "FIRST and LAST share what only one of them keeps",
        _ENDS,
    ),
    Mutant(
        "quality/counts.py",
        "(pc.less_equal if strict_min else pc.less)",
        "pc.less",
        "rows at h0 itself, which an earlier slice has told, pass",
        _COUNTS,
    ),
    Mutant(
        "quality/counts.py",
        "_true(pc.less_equal(rows.column(column_A), rows.column(column_B)))",
        "_true(pc.less(rows.column(column_A), rows.column(column_B)))",
        "a row may be valid at no instant",
        _COUNTS,
    ),
    Mutant(
        "operators/bridge.py",
        "judged = table.select([*target.schema.names, *self.spec.checks])",
        "judged = table.select([*target.schema.names, *self.spec.checks]).slice(0, 0)",
        "what a worker writes is not judged",
        _COUNTS,
    ),
    Mutant(
        "quality/verdict.py",
        'problem = problem if count is not None else "its rows were not counted"',
        "count = count or 0",
        "a check that nobody counted passes",
        _COUNTS,
    ),
    Mutant(
        "spark_jobs/slices/audit.py",
        "verdict.require(judged, table.name, slice_)  # what the counts say holds, whatever is read again",
        "pass",
        "a law is broken where the rows that are read again keep it",
        ("tests/quality/test_audit.py",),
    ),
    Mutant(
<<<<<<< HEAD
        "spark_jobs/admission/judging/parts.py",
        "SendTask(held[0].schema, tuple(columns), ",
        "SendTask(held[0].schema, tuple(held[0].schema.names), ",
        "rows of one key are judged in several parts",
        _PARTS,
    ),
    Mutant(
        "spark_jobs/admission/judging/duplicates.py",
        'ends.max - self._reach) + self._reach, side="right")',
        "ends.max - self._reach) + self._reach)",
        "a kept row that lies just within reach is not found",
        _PARTS,
    ),
    Mutant(
        "spark_jobs/admission/relation/log_parts.py",
        "yield _of(whole, _NEW), LogPart(_of(whole, _RIPE), _of(whole, _PAST))",
        "yield _of(whole, _NEW), LogPart(_of(whole, _RIPE), _of(whole, _PAST).slice(0, 0))",
        "what a record was before is forgotten",
        ("tests/spark_jobs/test_relation_admission.py::test_a_late_row_lets_a_change_leave_the_quarantine",),
    ),
    Mutant(
        "operators/state/open_rows.py",
        "ended(begin, end), done)",
        "ended(begin, end - 1), done)",
        "rows that end at the last instant of a part stay open",
        ("tests/operators/test_open_rows.py::test_any_history",),
=======
        "operators/worker_memory.py",
        "except MemoryError as error:",
        "except RecursionError as error:",
        "a failed allocation does not say what it was for",
        _MEMORY,
    ),
    Mutant(
        "operators/worker_memory.py",
        "            watched.forget()",
        "            pass",
        "the note of a task that has ended stays",
        _MEMORY,
    ),
    Mutant(
        "infra/worker_daemon.py",
        "resource.setrlimit(resource.RLIMIT_DATA, (most, hard))",
        "pass",
        "a worker takes what memory it likes, until the system kills it",
        (
            "tests/infra/test_worker_daemon.py::test_a_worker_beyond_its_memory_has_an_exception_and_not_less_than_it_may",
        ),
    ),
    Mutant(
        "spark_jobs/slices/long_tasks.py",
        "error.add_note(tasks[0].words())",
        "pass",
        "nobody hears what a killed worker was at",
        ("tests/spark_jobs/test_memory.py",),
>>>>>>> 4f023867 (Settings, pages and mutants for the memory of workers; a text says once that nothing was published)
    ),
)
"""Each is applied alone."""
