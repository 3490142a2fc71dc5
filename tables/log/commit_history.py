"""Whose the commits of a table are: up to which sequence a version holds an application's, and what others did."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime

from sweeparea.tables.errors import ForeignWrite
from sweeparea.tables.log.commits import Commit, read_apps
from sweeparea.tables.log.folders import files_in
from sweeparea.tables.log.log_reader import LogReader

NEAR = 16
"""So many of the last commits are looked at one by one."""
_COMMIT = re.compile(r"\d{20}\.json\Z", re.ASCII)


class CommitHistory(LogReader):
    """The commits of a table, by the applications that tagged them."""

    def version_tagged(self, app: str, sequence: int) -> int | None:
        """The version that holds what ``app`` had committed up to ``sequence``; None if the log no longer tells.

        Versions after it that rearrange files only hold the same rows, but the tagged one itself is returned. A table
        that ``app`` never touched up to ``sequence`` is pinned to its creation, version 0.
        """
        version = self.version()
        for _ in range(NEAR):  # most ask for one of the last commits
            apps = self._apps_of(version)
            if apps is None:
                return None
            if version == 0 or apps.get(app, sequence + 1) <= sequence:
                return version
            version -= 1
        oldest = self._oldest()
        low, high, found = oldest, version, 0 if oldest == 0 else None
        while low <= high:
            middle = tagged = (low + high) // 2
            seq = None
            while tagged >= low and seq is None:
                seq = (self._apps_of(tagged) or {}).get(app)
                tagged -= 1
            if seq is None:
                low = middle + 1
            elif seq <= sequence:
                found, low = tagged + 1, middle + 1
            else:
                high = tagged
        return found

    def foreign_commits(
        self, since_version: int, our_apps: Collection[str], version: int | None = None
    ) -> list[Commit]:
        """Others' commits after ``since_version`` that only rearrange files (OPTIMIZE), oldest first: they are adopted.

        Looks up to ``version``, the latest if not given. Any other commit that is not of ``our_apps`` (see
        :meth:`Commit.is_of`) raises ForeignWrite, unless what it did was undone since (RESTORE to the version before).
        """
        latest = self.version() if version is None else version
        commits = [commit for version in range(since_version + 1, latest + 1) if (commit := self.commit_of(version))]
        foreign = [commit for commit in commits if not commit.is_of(our_apps) and commit.version > 0]
        bad = [commit for commit in foreign if not commit.rearranges]
        if not bad:
            return foreign
        first, last = bad[0], bad[-1]
        ours_between = any(first.version < c.version < last.version and c.is_of(our_apps) for c in commits)
        if not ours_between and self._same_table(first.version - 1, last.version):
            return [commit for commit in foreign if not first.version <= commit.version <= last.version]
        when = "unknown" if first.time is None else datetime.fromtimestamp(first.time / 1e6, UTC).isoformat()
        raise ForeignWrite(
            f"The table {self.uri} was changed from outside: version {first.version} is a {first.operation} by"
            f" {first.engine} at {when}, and its rows or settings are no longer what SweepArea committed. Nothing was"
            f" overwritten. Undo it with RESTORE TABLE delta.`{self.uri}` TO VERSION AS OF {first.version - 1} and run"
            " again; keep own additions in a table of your own."
        )

    def refuse_foreign(self, owner: str) -> None:
        """ForeignWrite if somebody else changed rows or settings since the last commit of ``owner``, who alone may."""
        latest = self.version()
        self.foreign_commits(self.last_version_of({owner}, latest), {owner}, latest)

    def last_version_of(self, our_apps: Collection[str], version: int | None = None) -> int:
        """The latest version that one of ``our_apps`` committed; the creation, 0, if none did.

        Looks from the newest version back; where the log was cleaned it stops, at the oldest version it can see.
        """
        version = self.version() if version is None else version
        while version > 0:
            apps = self._apps_of(version)
            if apps is None or Commit(version, apps=apps).is_of(our_apps):
                break
            version -= 1
        return version

    def _apps_of(self, version: int) -> dict[str, int] | None:
        """Which applications committed a version, and up to which sequence; None if its log file is gone."""
        return read_apps(self.uri, version, self.storage_options)

    def _oldest(self) -> int:
        """The oldest version whose commit the log still tells."""
        names = (info.base_name for info in files_in(f"{self.uri.rstrip('/')}/_delta_log"))
        return min((int(name[:20]) for name in names if _COMMIT.match(name)), default=self.version())

    def _same_table(self, left: int, right: int) -> bool:
        """Whether two versions hold the same files under the same columns and settings."""
        a, b = self.handle.opened(left), self.handle.opened(right)
        settings = [(t.schema().to_json(), t.metadata().configuration, t.metadata().partition_columns) for t in (a, b)]
        return settings[0] == settings[1] and self.paths(left) == self.paths(right)
