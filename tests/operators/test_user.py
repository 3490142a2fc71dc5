"""Loading decorated Python objects, and what is told where that fails."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sweeparea.operators import user
from sweeparea.operators.plan.plan import UserKind

HERE = "tests.operators.user_samples"
FUNCTION, WINDOW = UserKind.FUNCTION, UserKind.WINDOW


def test_what_is_loaded() -> None:
    code = user.load(f"{HERE}:celsius", UserKind.FUNCTION)
    assert (code.kind, code.type) == ("function", "double")
    assert code(pa.array([212.0])).to_pylist() == [100.0]
    assert user.load(f"{HERE}:spread", UserKind.AGGREGATE).type == "array<struct<v:int>>"
    assert user.load(f"{HERE}:hold_for", UserKind.WINDOW).type == "WK"


@pytest.mark.parametrize(
    ("target", "kind", "told"),
    [
        ("no_such_module:f", FUNCTION, "There is no Python module no_such_module. Put it beside the .cql files,"),
        ("tests.no_such:f", FUNCTION, "There is no Python module tests.no_such."),
        (f"{HERE}:fahrenheit", FUNCTION, f"{HERE}:fahrenheit names nothing: module {HERE} has no fahrenheit. It has "
         "celsius, hold_for, misdeclared, odd, spread."),
        (f"{HERE}:plain", FUNCTION, f'{HERE}:plain is not decorated: write @function(returns="double") above it'),
        (f"{HERE}:plain", WINDOW, f'{HERE}:plain is not decorated: write @window(pattern="WK") above it'),
        (f"{HERE}:spread", FUNCTION, f"{HERE}:spread is decorated as an aggregate. Write CREATE AGGREGATE"),
        (f"{HERE}:misdeclared", FUNCTION, f"{HERE}:misdeclared declares that it returns 'int64', which is no Spark"),
        (f"{HERE}:odd", WINDOW, f"{HERE}:odd declares the pattern 'sometimes'; patterns are monotonic, WKS"),
    ],
)  # fmt: skip
def test_what_is_told(target: str, kind: UserKind, told: str) -> None:
    with pytest.raises(user.UserCodeError) as caught:
        user.load(target, kind)
    assert str(caught.value).startswith(told)


def test_a_module_that_fails_or_lacks_something(tmp_path, monkeypatch) -> None:
    (tmp_path / "sweeparea_fails.py").write_text("1 / 0\n")
    (tmp_path / "sweeparea_lacks.py").write_text("import not_installed_anywhere\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(user.UserCodeError, match="Importing module sweeparea_fails failed: ZeroDivisionError"):
        user.load("sweeparea_fails:f", UserKind.FUNCTION)
    with pytest.raises(user.UserCodeError, match="Module sweeparea_lacks imports not_installed_anywhere"):
        user.load("sweeparea_lacks:f", UserKind.FUNCTION)


@pytest.mark.parametrize("text", ["int", "decimal(38,0)", "array<map<string,double>>", "struct<a:int,b:array<date>>"])
def test_types(text: str) -> None:
    assert user.is_type(text)


@pytest.mark.parametrize(
    "text", ["", "integer64", "decimal(39,0)", "decimal(2,3)", "array<>", "map<int>", "struct<int>"]
)
def test_no_types(text: str) -> None:
    assert not user.is_type(text)
