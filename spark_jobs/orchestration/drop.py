"""Drop: forgets a stream, relation or query with its tables. Source tables are the user's and are never touched.

The ledger's row goes first, so that a run killed in between leaves files that nobody reads, never half a table; the
deployed row goes last, so that it tells of what is left to be done. Nobody begins under another registration before the
tables are gone, and nobody takes tables away once there is another registration: so a run that was suspended, and goes
on when the name has been made anew, takes nothing of it.
"""

from __future__ import annotations

from sweeparea.cql.text.errors import listing, nearest
from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.infra.errors import SweepAreaError, UsageError
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.deployment.discard import discard
from sweeparea.spark_jobs.deployment.planned import readers_of, shared_by_others
from sweeparea.tables.publication.name_kinds import NameKind


class NotDropped(SweepAreaError):
    """Something else rests on the name."""


def drop(application: Application, name: str, kind: str | None = None, purge: bool = True) -> list[str]:
    """Forgets a name. Its tables are deleted, or without ``purge`` laid aside under ``_sweeparea/dropped``.

    ``kind`` (stream, relation, query) must be the name's, if given. Refused while another query reads it. Returns what
    was done, a line each.
    """
    head, deployed = application.ledger.head(), application.registry.deployed.rows()
    declared = application.catalog.declared()
    known = {row.name: row.kind for row in (*head.values(), *deployed.values())}
    known |= {n: k for k, names in _declared(application) for n in names}
    if name not in known:
        raise UsageError(f"There is nothing named {name}. {nearest(name, known)} Known: {listing(sorted(known))}.")
    if is_hidden(name) and (read := readers_of(deployed, name)):
        raise NotDropped(
            f"{name} is no query of your own: it is a hidden subplan that queries share, and is read by"
            f" {', '.join(read)}. It goes with its last reader: drop {'it' if len(read) == 1 else 'them'}, if you mean"
            f" that ({'; '.join(application.command('drop', q) for q in read)})."
        )
    is_ = known[name]
    if kind is not None and is_ != kind and not is_hidden(name):
        raise NotDropped(
            f"{name} is a {is_.words}, not a {NameKind(kind).words}. Write DROP {is_.words.upper()} {name}."
        )
    # hidden queries go with their readers, which read what these read
    readers = {row.name for row in deployed.values() if name in row.depends_on and row.kind != NameKind.SHARED}
    if is_hidden(name):
        readers |= set(readers_of(deployed, name))
    readers |= {q for q in application.catalog.queries if q in head and name in application.catalog.dependencies(q)}
    if readers:
        places = [f"{q} ({declared[q].place})" if q in declared else f"{q} (not in the files)" for q in sorted(readers)]
        one = len(places) == 1
        raise NotDropped(
            f"{name} is read by {', '.join(places)}, whose results rest on it. Drop {'it' if one else 'these'} first:"
            f" {'; '.join(application.command('drop', q) for q in sorted(readers))}."
        )
    done = _forget(application, name, purge)
    if name in declared:
        place = declared[name].place
        done.append(f"{name}: still declared at {place}; while it is, the next run registers it anew")
    return done + drop_unread(application, purge)


def drop_unread(application: Application, purge: bool = True) -> list[str]:
    """Drops the hidden queries that no query reads any more; returns what was done."""
    deployed = application.registry.deployed.rows()
    there = {*deployed, *application.ledger.head()}
    read = set(shared_by_others(deployed))
    unread = sorted(name for name in there if is_hidden(name) and name not in read)
    return [line for name in unread for line in _forget(application, name, purge)]


def _forget(application: Application, name: str, purge: bool) -> list[str]:
    """Removes a name from the ledger, its tables, and from what is deployed."""
    deployed = application.registry.deployed.rows().get(name)
    done = take_away(application, name, purge)
    if deployed is not None:
        application.registry.deployed.remove(name, deployed.registration)
        done.append(f"{name}: no longer deployed")
    return done


def take_away(application: Application, name: str, purge: bool) -> list[str]:
    """Removes a name from the ledger, with its tables; returns what was done. What is deployed stays, and may be
    registered anew from now on.
    """
    ledger, done = application.ledger, list[str]()
    row, deployed = ledger.row(name), application.registry.deployed.rows().get(name)
    if deployed is not None and deployed.kind == NameKind.FUNCTION:
        return done
    registrations = [each.registration for each in (deployed, row) if each is not None]
    for registration in registrations:
        if not ledger.used(f"{name}:{registration}"):  # its first run may be at work, or was killed
            ledger.retire(f"{name}:{registration}")
    if row is not None:
        ledger.forget(name, row.seq, row.attempt)
        done.append(f"{name}: removed from the ledger")
    return done + discard(application, application.registry.deployed, name, next(iter(registrations), "x"), purge)


def _declared(application: Application) -> list[tuple[NameKind, list[str]]]:
    catalog = application.catalog
    return [
        (NameKind.STREAM, [*catalog.streams]),
        (NameKind.RELATION, [*catalog.relations]),
        (NameKind.QUERY, [*catalog.queries]),
    ]
