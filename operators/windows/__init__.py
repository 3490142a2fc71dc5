"""All windows by name, and what they have in common."""

from sweeparea.operators.windows.arrival_windows import Rows, Session, UserWindow, When
from sweeparea.operators.windows.bucket_windows import Calendar, Fixed, Hopping
from sweeparea.operators.windows.definitions import BucketWindow, TimeWindow, WindowDefinition
from sweeparea.operators.windows.time_windows import Landmark, Range, Slide, Unbounded

__all__ = [
    "BucketWindow",
    "Calendar",
    "Fixed",
    "Hopping",
    "Landmark",
    "Range",
    "Rows",
    "Session",
    "Slide",
    "TimeWindow",
    "Unbounded",
    "UserWindow",
    "When",
    "WindowDefinition",
]
