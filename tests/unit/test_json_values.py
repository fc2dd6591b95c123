"""Values of other people's documents: taken when they are what they should be."""

from __future__ import annotations

import math

import pytest

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.json_values import finite, list_of, text, whole


@pytest.mark.parametrize(
    ("value", "as_text", "as_whole", "as_finite"),
    [
        ("a", "a", None, None),
        ("", "", None, None),
        (3, None, 3, 3.0),
        (0, None, 0, 0.0),
        (-1, None, None, -1.0),
        (10, None, None, None),
        (2.5, None, None, 2.5),
        (math.nan, None, None, None),
        (-math.inf, None, None, None),
        (True, None, None, None),
        (None, None, None, None),
        ([1], None, None, None),
    ],
)
def test_a_value_is_what_it_should_be_or_none(
    value: object, as_text: str | None, as_whole: int | None, as_finite: float | None
) -> None:
    assert (text(value), whole(value, 0, 10), finite(value, 10)) == (as_text, as_whole, as_finite)


def test_a_list_or_an_error_that_says_what_it_should_be() -> None:
    assert list_of([1], "times", "f.json", "[1, ...]") == [1]
    assert list_of({"a": 1}, "times", "f.json", "[1, ...]", single=True) == [{"a": 1}]
    with pytest.raises(
        TraceFormatError, match=r"f\.json: no times in it; expected \[1, \.\.\.\]; found dict\. Go"
    ):
        list_of({"a": 1}, "times", "f.json", "[1, ...]", hint="Go")
