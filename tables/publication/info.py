"""What the ledger keeps of a commit beside its files, as types: of sources, of a query's slices, of its SweepAreas.

On disk the ``info`` of a row is one JSON object. ``of`` reads it; what is absent, as in rows of earlier versions, is
None or empty. ``to_json`` gives what is set, in the order of the fields. A commit that changes part of an info lays
that over what was there (``laid_over``), so that what others keep is carried on, each key in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, Self

Json = dict[str, Any]


class Info(Protocol):
    """A part of an info."""

    def to_json(self) -> Json:
        """What is set, by the keys on disk."""
        ...


def laid_over(stored: Mapping[str, Any], *parts: Info) -> Json:
    """A stored info with other values for what ``parts`` say, which come last where they are new."""
    info = dict(stored)
    for part in parts:
        info |= part.to_json()
    return info


@dataclass(frozen=True)
class Accepted:
    """A person has accepted that rows of ``(since, upto]`` violate some constraints: ticks of a query, versions of a
    source. ``at``: microseconds since 1970 UTC.
    """

    since: int
    upto: int
    constraints: tuple[str, ...]
    who: str
    why: str
    at: int

    @classmethod
    def all(cls, stored: Iterable[Mapping[str, Any]] | None) -> tuple[Accepted, ...] | None:
        if stored is None:
            return None
        return tuple(cls(s["since"], s["upto"], tuple(s["constraints"]), s["who"], s["why"], s["at"]) for s in stored)

    def to_json(self) -> Json:
        return {**vars(self), "constraints": list(self.constraints)}


@dataclass(frozen=True)
class SourceInfo:
    """Of a commit of a stream or relation. Instants are microseconds since 1970 UTC.

    ``source_version`` is the last version of the source that was taken, ``instant`` its own instant c(v),
    ``commit_time`` the greatest commit time so far; ``policy`` what the heartbeat's policy keeps; ``correction_seq``
    the last commit that changed anything at or below the heartbeat before it; ``taken_back``: an element was taken
    back. ``totals`` are counted over a stream's life, ``rows``, ``quarantined`` and ``clamped`` in this commit.
    ``definition`` is the declaration's fingerprint, ``source_id`` the table's own id, ``chronon`` the microseconds of a
    tick (0: BIGINT ticks), ``chars`` the declared types of columns that are read padded. ``released``: rows that this
    commit released from quarantine, which later ones do not carry on; ``refreshed``: how often a pinned relation was
    pinned anew; ``retained`` the greatest tick at or below which RETAIN has let elements go, ``repairs_from`` then the
    least tick of which a late element can be repaired. ``verdicts`` of its constraints, by the run ``judged``, which
    later commits carry on; ``accepted``: versions of the source in which a person has accepted violations of some
    constraints (``Accepted``).
    """

    source_version: int | None = None
    instant: int | None = None
    commit_time: int | None = None
    policy: Mapping[str, Any] | None = None
    correction_seq: int | None = None
    taken_back: bool | None = None
    totals: Mapping[str, int] | None = None
    rows: int | None = None
    quarantined: int | None = None
    clamped: int | None = None
    definition: str | None = None
    source_id: str | None = None
    chronon: int | None = None
    chars: Mapping[str, str] | None = None
    released: Sequence[Mapping[str, Any]] | None = None
    refreshed: int | None = None
    retained: int | None = None
    repairs_from: int | None = None
    verdicts: Sequence[Mapping[str, Any]] | None = None
    judged: str | None = None
    accepted: tuple[Accepted, ...] | None = None

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        plain = {f.name: stored.get(f.name) for f in fields(cls) if f.name != "accepted"}
        return cls(**plain, accepted=Accepted.all(stored.get("accepted")))

    def to_json(self) -> Json:
        told = {name: value for name, value in vars(self).items() if value is not None}
        return {**told, **_accepted(self.accepted)}


def _accepted(accepted: Iterable[Accepted] | None) -> Json:
    return {} if accepted is None else {"accepted": [each.to_json() for each in accepted]}


@dataclass(frozen=True)
class AreaInfo:
    """Of one SweepArea: rows and bytes in its files; ``touched`` the rows that the last slice wrote (None: it had
    nothing to do with it); ``live`` how many of its rows count, and ``keys`` its key's columns, where it is keyed.
    """

    rows: int
    bytes: int
    touched: int | None = None
    live: int | None = None
    keys: tuple[str, ...] | None = None


@dataclass
class AreasInfo:
    """Of all SweepAreas of a query, each fact by operator; on disk under ``state_rows``, ``state_bytes``, .."""

    rows: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    touched: dict[str, int] = field(default_factory=dict)
    live: dict[str, int] = field(default_factory=dict)
    keys: dict[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        return cls(**{f.name: dict(stored.get(f"state_{f.name}") or {}) for f in fields(cls)})

    def to_json(self) -> Json:
        return {f"state_{name}": facts for name, facts in vars(self).items()}

    def __getitem__(self, op: str) -> AreaInfo:
        keys = self.keys.get(op)
        own = None if keys is None else tuple(keys)
        return AreaInfo(self.rows[op], self.bytes.get(op, 0), self.touched.get(op), self.live.get(op), own)

    def holds(self, op: str, rows: int, size: int) -> None:
        """The files of a SweepArea hold so many rows and bytes now."""
        self.rows[op], self.bytes[op] = rows, size

    def grew(self, op: str, rows: int, size: int) -> None:
        """The files of a SweepArea hold so many rows and bytes more."""
        self.holds(op, self.rows.get(op, 0) + rows, self.bytes.get(op, 0) + size)


@dataclass(frozen=True)
class Sizes:
    """The part of ``AreasInfo`` that changes where rows of a SweepArea are exchanged between slices."""

    areas: AreasInfo

    def to_json(self) -> Json:
        return {f"state_{name}": getattr(self.areas, name) for name in ("rows", "bytes", "live")}


@dataclass(frozen=True)
class RewriteInfo:
    """What changed a query's results afterwards, last: why, the stretch as a slice (ticks), and rows, in words."""

    cause: str | None = None
    since: int | None = None
    upto: int | None = None
    rows: str | None = None

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        return cls(**{f.name: stored.get(f.name) for f in fields(cls)})

    def to_json(self) -> Json:
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class ExchangeInfo:
    """The results of a new definition took the place of another's: the fingerprint of the old one (``from`` on disk)
    and the new one as ``deployed.definition`` gives it (``to``); ``renewed``: a result was exchanged as a whole. The
    deployed table is one more table that such a commit is applied to.
    """

    old: str
    new: Mapping[str, Any]
    renewed: bool | None = None

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        return cls(stored["from"], stored["to"], stored.get("renewed"))

    def to_json(self) -> Json:
        more = {} if self.renewed is None else {"renewed": self.renewed}
        return {"from": self.old, "to": dict(self.new), **more}


@dataclass(frozen=True)
class QueryInfo:
    """Of a commit of a query: its last slice, and what was done to its results since.

    ``definition`` is the declaration's fingerprint, ``plan`` the identity of the SweepAreas' plan; ``h0`` where the
    slice began (tick), ``rows_in`` about how many rows it read, ``rows`` how many it wrote by kind of table;
    ``verdicts`` of Great Expectations, by the run ``judged``; ``seconds`` by phase; ``chronon`` the microseconds of a
    tick (0: BIGINT ticks), ``start`` the plan's first tick; ``columns`` those of the queries' results that it reads,
    each as a hash; ``zones`` by time zone the rules that results were computed by. ``correction_seq`` is the last
    commit that changed anything at or below the instant before it, ``rewrite`` what that was; ``built`` the commit
    before which SweepAreas are not gone on from. ``tables`` has per table the last commit that changed it, which the
    table must say too. ``accepted``: stretches of time in which a person has accepted violations of some constraints
    (``Accepted``).
    """

    definition: str | None = None
    plan: str | None = None
    h0: int | None = None
    rows_in: int | None = None
    rows: Mapping[str, int] | None = None
    areas: AreasInfo | None = None
    verdicts: Sequence[Mapping[str, Any]] | None = None
    seconds: Mapping[str, float] | None = None
    chronon: int | None = None
    start: int | None = None
    columns: Mapping[str, str | None] | None = None
    zones: Mapping[str, list[str]] | None = None
    correction_seq: int | None = None
    rewrite: RewriteInfo | None = None
    built: int | None = None
    exchanged: ExchangeInfo | None = None
    tables: Mapping[str, int] | None = None
    judged: str | None = None
    accepted: tuple[Accepted, ...] | None = None

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        rewrite, exchanged = stored.get("rewrite"), stored.get("exchanged")
        typed = ("areas", "rewrite", "exchanged", "accepted")
        plain = {f.name: stored.get(f.name) for f in fields(cls) if f.name not in typed}
        return cls(
            **plain,
            accepted=Accepted.all(stored.get("accepted")),
            areas=AreasInfo.of(stored),
            rewrite=RewriteInfo.of(rewrite) if rewrite else None,
            exchanged=ExchangeInfo.of(exchanged) if exchanged else None,
        )

    @property
    def state(self) -> AreasInfo:
        """The SweepAreas; none where the row tells of none."""
        return self.areas or AreasInfo()

    def to_json(self) -> Json:
        told: Json = {}
        for name, value in vars(self).items():
            match value:
                case None:
                    continue
                case AreasInfo():
                    told |= value.to_json()
                case RewriteInfo() | ExchangeInfo():
                    told[name] = value.to_json()
                case _:
                    told[name] = value
        return told | _accepted(self.accepted)


def without(stored: Mapping[str, Any], keys: Iterable[str]) -> Json:
    """A stored info without some keys."""
    left_out = set(keys)
    return {key: value for key, value in stored.items() if key not in left_out}
