"""What the language has no words for."""

from __future__ import annotations

from sweeparea.infra.errors import SweepAreaError


class NotPrintable(SweepAreaError):
    """A plan that no text of the language means."""
