"""A pytest plugin: Hypothesis tells that an example fails and does not look for a smaller one, which takes longest."""

from __future__ import annotations

from hypothesis import Phase, settings


def pytest_configure() -> None:
    settings.register_profile("unshrunk", phases=(Phase.explicit, Phase.generate), database=None, print_blob=False)
    settings.load_profile("unshrunk")
