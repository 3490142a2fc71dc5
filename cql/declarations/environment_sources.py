"""Sources of streams and relations exchanged for those of an environment."""

from __future__ import annotations

from dataclasses import replace

from sweeparea.cql.syntax.settings import check_settings
from sweeparea.cql.syntax.statements import CreateRelation, CreateStream
from sweeparea.cql.text.errors import BindError, ParseError, listing, nearest
from sweeparea.infra.environments import Environment
from sweeparea.infra.errors import SweepAreaError


def faults_of_settings(environment: Environment) -> list[SweepAreaError]:
    """What is wrong with the settings of an environment."""
    return [_in_file(fault, environment) for fault in check_settings(environment.settings, {})]


def exchange_sources(
    streams: dict[str, CreateStream], relations: dict[str, CreateRelation], environment: Environment
) -> list[SweepAreaError]:
    """Gives the streams and relations that an environment names its sources. Returns errors for those not declared."""
    errors: list[SweepAreaError] = []
    declared = {n.lower(): n for n in (*streams, *relations)}
    for name, uri in environment.sources.items():
        known = declared.get(name.lower())
        if known is None:
            names = list(declared.values())
            errors.append(
                BindError(
                    f"{environment.file}: [{environment.name}.sources]: {name} is no stream or relation",
                    None,
                    nearest(name, names) or f"There are {listing(names) or 'none'}",
                )
            )
        elif known in streams:
            stream = streams[known]
            streams[known] = replace(stream, source=replace(stream.source, uri=uri))
        else:
            relation = relations[known]
            relations[known] = replace(relation, source=replace(relation.source, uri=uri))
    return errors


def _in_file(fault: BindError | ParseError, environment: Environment) -> SweepAreaError:
    """A fault of a setting, told with the environment that it stands in."""
    return type(fault)(f"{environment.file}: [{environment.name}.settings]: {fault.message}", None, fault.hint)
