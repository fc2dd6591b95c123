"""Whether what was read back is what was saved: frames, dtypes, meta data, and every event's details."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd

from torchtrt_viz.model.schema import EVENTS
from torchtrt_viz.trace import Trace


def same_value(a: Any, b: Any, place: str) -> None:
    """Equal, of the same type, with the same things missing; a mapping that is read lazily is a dict."""
    if isinstance(a, np.generic):
        a = a.item()
    if isinstance(a, Mapping) and not isinstance(a, dict):
        a = dict(a)
    assert type(a) is type(b), (place, type(a), type(b))
    if isinstance(a, pd.DataFrame):
        same_frame(a, b, place)
    elif isinstance(a, dict):
        assert list(a) == list(b), place
        for key in a:
            same_value(a[key], b[key], f"{place}[{key!r}]")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), place
        for number, (one, other) in enumerate(zip(a, b, strict=True)):
            same_value(one, other, f"{place}[{number}]")
    elif is_dataclass(a):
        for one in fields(a):
            same_value(getattr(a, one.name), getattr(b, one.name), f"{place}.{one.name}")
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, place
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, float) and a != a:
        assert b != b, place
    else:
        assert a is b or a == b, (place, a, b)


def same_frame(a: pd.DataFrame, b: pd.DataFrame, place: str) -> None:
    assert list(a.columns) == list(b.columns), place
    assert a.dtypes.astype(str).tolist() == b.dtypes.astype(str).tolist(), place
    plain = [name for name in a if a[name].dtype != object]
    pd.testing.assert_frame_equal(a[plain], b[plain], check_exact=True, obj=place)
    for name in a:
        if a[name].dtype == object:
            same_value(a[name].tolist(), b[name].tolist(), f"{place}.{name}")
    assert a.index.equals(b.index), place
    same_value(a.attrs, b.attrs, f"{place}.attrs")


def same_trace(saved: Trace, back: Trace) -> None:
    assert type(back) is type(saved)
    for schema in EVENTS:
        same_frame(getattr(saved, schema.name), getattr(back, schema.name), schema.name)
    same_value(saved.meta, back.meta, "meta")
    same_value(saved.args.read(), back.args.read(), "args")
    same_value(saved.instant_args.read(), back.instant_args.read(), "instant_args")
