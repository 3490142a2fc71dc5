"""A refused verdict that a person accepts: who, and why, and of which constraints in which stretch of time.

What was refused stands in ``quality.verdicts``; a refusal is over when its name has committed again. Accepting commits
to the ledger, and nothing else: the next run does the work, and its verdict warns where it would have failed.
"""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sweeparea.infra.errors import SweepAreaError, UsageError
from sweeparea.quality.suites import COMPUTED, CONSTRAINT
from sweeparea.quality.verdict_tables import VerdictTables
from sweeparea.spark_jobs.application import Application
from sweeparea.tables.publication.info import Accepted, Info, QueryInfo, SourceInfo, laid_over
from sweeparea.tables.publication.ledger import LedgerRow, now_micros
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication, recover

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PREFIXES = (CONSTRAINT, COMPUTED)


@dataclass(frozen=True)
class Refusal:
    """The last run of a name whose verdict was refused and that has not been run well since.

    ``broken`` counts by check the rows that break it; ``(since, upto]`` is its slice in ticks, ``version`` that of a
    source; ``cause``: why it was computed, None for a new slice; ``stretch`` the slice in
    words. ``at``: when (UTC).
    """

    name: str
    kind: NameKind
    at: datetime
    broken: Mapping[str, int | None]
    since: int | None = None
    upto: int | None = None
    version: int | None = None
    cause: str | None = None
    stretch: str = ""

    @property
    def constraints(self) -> tuple[str, ...]:
        """The constraints that were violated."""
        return tuple(dict.fromkeys(id_.partition(":")[2] for id_ in self.broken if id_.startswith(_PREFIXES)))

    @property
    def laws(self) -> tuple[str, ...]:
        """What else has failed: nobody can accept that."""
        return tuple(id_ for id_ in self.broken if not id_.startswith(_PREFIXES))


def refusals(application: Application, head: Mapping[str, LedgerRow]) -> dict[str, Refusal]:
    """By name what was refused and is not over."""
    verdicts = VerdictTables(application.ledger).refused()
    found: dict[str, Refusal] = {}
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in verdicts.to_pylist():
        rows.setdefault((row["name"], row["attempt"]), []).append(row)
    for (name, _), told in sorted(rows.items(), key=lambda item: item[1][0]["judged_at"]):
        first, last = told[0], head.get(name)
        if last is not None and first["judged_at"] <= _EPOCH + timedelta(microseconds=last.at):
            continue
        bad = [r for r in told if r["status"] != "pass" and r["severity"] == "critical"]
        broken: dict[str, int | None] = {}
        for r in bad:
            broken[r["expectation"]] = max(broken.get(r["expectation"]) or 0, r["unexpected"] or 0)
        kind = NameKind(first["kind"])
        since, upto, version = first["since_tick"], first["upto_tick"], first["source_version"]
        ends = [
            str(t if at is None else at.replace(tzinfo=None))
            for at, t in ((first["since"], since), (first["upto"], upto))
        ]
        stretch = f"({', '.join(ends)}]"
        found[name] = Refusal(name, kind, first["judged_at"], broken, since, upto, version, first["cause"], stretch)
    return found


def refusal_text(application: Application, refusal: Refusal) -> str:
    """A refusal in a sentence, with what can be done."""
    names = ", ".join(
        f"{id_.removeprefix(CONSTRAINT)}{f' ({n:,} rows)' if n else ''}" for id_, n in refusal.broken.items()
    )
    what = f"{_subject(refusal)} was refused on {refusal.at:%Y-%m-%d %H:%M:%S}: {names}"
    again = application.command("admit" if refusal.kind != NameKind.QUERY else "process", refusal.name)
    if refusal.laws:
        return f"{what}; a law of results is broken, which nobody can accept: please report it"
    accept = application.command("accept", refusal.name, "--why", "'..'")
    return f"{what}; correct the rows or the constraint and run `{again}`, or accept it: `{accept}`"


def accept(application: Application, name: str, why: str, who: str | None = None) -> tuple[Refusal, Accepted]:
    """Accepts what was refused of a name. UsageError: nothing was, or no reason is given; SweepAreaError: a law of
    results was broken.
    """
    if not why.strip():
        raise UsageError("Say why it is accepted: it is kept with who has accepted it.")
    if not application.is_query(name):
        application.source(name)
    recover(str(application.data), application.ledger, [name])
    head = application.ledger.head()
    refusal = refusals(application, head).get(name)
    if refusal is None:
        raise UsageError(
            f"Nothing of {name} is refused: no run has been since its last commit whose verdict was. There is nothing"
            " to accept."
        )
    if refusal.laws or not refusal.constraints:
        raise SweepAreaError(
            f"{name}: {', '.join(refusal.laws)} has failed. That is no constraint but a law that every result obeys: a"
            " defect of the engine, which cannot be accepted. Please report it with the rows in quality.samples."
        )
    since, upto = _stretch(refusal)
    accepted = Accepted(since, upto, refusal.constraints, who or getpass.getuser(), why.strip(), now_micros())
    row = head.get(name)
    registration = application.registry.registration(name, row)
    publication = Publication(str(application.data), application.ledger, name, refusal.kind, registration)
    publication.begin()
    if row is not None:
        publication.require(row)
    publication.commit(
        committed=None if row is None else row.committed,
        pins={} if row is None else row.pins,
        info=laid_over({} if row is None else row.info, _with(row, refusal.kind, accepted)),
    )
    return refusal, accepted


def _with(row: LedgerRow | None, kind: NameKind, accepted: Accepted) -> Info:
    if kind == NameKind.QUERY:
        before = None if row is None else row.of_query.accepted
        return QueryInfo(accepted=(*(before or ()), accepted))
    before = None if row is None else row.of_source.accepted
    return SourceInfo(accepted=(*(before or ()), accepted))


def _stretch(refusal: Refusal) -> tuple[int, int]:
    if refusal.kind == NameKind.QUERY:
        assert refusal.since is not None
        assert refusal.upto is not None
        return refusal.since, refusal.upto
    assert refusal.version is not None
    return refusal.version - 1, refusal.version


def _subject(refusal: Refusal) -> str:
    if refusal.kind != NameKind.QUERY:
        return f"{refusal.name}: version {refusal.version} of its source"
    return f"{refusal.name}: the slice {refusal.stretch}{f', {refusal.cause},' if refusal.cause else ''}"


def accepted_text(application: Application, refusal: Refusal, accepted: Accepted) -> str:
    """What has been accepted, in a sentence."""
    again = application.command("process" if refusal.kind == NameKind.QUERY else "admit", refusal.name)
    names = ", ".join(accepted.constraints)
    return (
        f"{_subject(refusal)} may violate {names} now: {accepted.who} has accepted it ({accepted.why}). Go on with"
        f" `{again}`."
    )
