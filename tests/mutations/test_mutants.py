"""The faults that are put in on purpose can be put in: texts that code no longer has would pass unnoticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutations.mutants import MUTANTS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("file", sorted({mutant.file for mutant in MUTANTS}))
def test_each_text_stands_once_in_its_file(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    assert [m.old for m in MUTANTS if m.file == file and text.count(m.old) != 1] == []


def test_each_test_has_a_file() -> None:
    named = {test.split("::")[0] for mutant in MUTANTS for test in mutant.tests}
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
