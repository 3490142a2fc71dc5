"""``HEARTBEAT POLICY 'module:object'``: the heartbeat as a Python function of the application says.

The function is called once after each source version, in order, with a ``PolicyVersion``, and gives the heartbeat as a
tick, or None where it has nothing to say. Like every policy's its value is clamped: a heartbeat never goes back. It
must be a function of what it is given alone, for a version that a killed run did not commit is judged again.

>>> def half_an_hour_behind_the_second_greatest(version):
...     seen = sorted([*version.state.get("last", []), *version.elements["__tick"].to_pylist()])[-2:]
...     version.state["last"] = seen
...     return seen[0] - 1800 if len(seen) == 2 else None
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sweeparea.heartbeats.policies import HeartbeatDecision, VersionFacts, advance
from sweeparea.infra.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class PolicyVersion:
    """What a policy sees of one source version.

    stream       the stream's name
    version      the source's version
    elements     the elements that were admitted (Arrow), in any order: the source's columns and their ``__tick``
    previous     the heartbeat before this version (tick), None for a stream that has none yet
    commit_time  microseconds, the version's own instant c(v)
    read_time    microseconds, when the source's log was read
    state        a dictionary of JSON values, empty at first; what is put into it comes back with the next version
    """

    stream: str
    version: int
    elements: pa.Table
    previous: int | None
    commit_time: int
    read_time: int
    state: dict[str, Any]


@dataclass(frozen=True)
class UserPolicy:
    """A registered policy. ``elements`` are those of the version that is evaluated next."""

    name: str
    call: Callable[[PolicyVersion], int | None]
    stream: str
    version: int
    elements: pa.Table

    def evaluate(self, previous: int | None, version: VersionFacts) -> HeartbeatDecision:
        import json

        state = json.loads(json.dumps(version.state))  # its own: a failed call leaves no trace
        seen = PolicyVersion(
            self.stream, self.version, self.elements, previous, version.commit_time or 0, version.read_time or 0, state
        )
        try:
            value = self.call(seen)
            kept = json.loads(json.dumps(seen.state, allow_nan=False))
        except Exception as error:
            raise self._failed(f"failed with {type(error).__name__}: {error}") from error
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise self._failed(f"gave {value!r}, which is no tick (int) and not None")
        decision = advance(previous, value)
        return HeartbeatDecision(decision.heartbeat, decision.clamped, kept)

    def _failed(self, what: str) -> DataError:
        return DataError(
            f"Stream {self.stream}, version {self.version} of its source: HEARTBEAT POLICY {self.name!r} {what}."
            " Nothing of this version was admitted. Correct the policy and run again."
        )
