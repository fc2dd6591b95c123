"""Compile specs of the delegate: defaults that a program carries, below what is asked for when it is loaded.

Keys and values are those of the runtime options (first RFC, "Configuration"); they are checked at export,
so that a program with an impossible level is never written.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from torchtrt_viz.errors import OptionError
from torchtrt_viz.runtime.profile_settings import FORMATS, LEVELS, check_choice, check_path_prefix

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ALIAS_META", "GRANULARITIES", "KEYS", "check_specs", "compile_specs", "spec_values"]

LEVEL_KEY = "torchtrt_profile_level"
FORMAT_KEY = "torchtrt_profile_format"
PREFIX_KEY = "torchtrt_profile_path_prefix"
#: How the host engine cuts a region into layers; used at export only.
GRANULARITY_KEY = "torchtrt_host_layers"
#: Name of the region; used at export only.
REGION_KEY = "torchtrt_region"
KEYS: tuple[str, ...] = (LEVEL_KEY, FORMAT_KEY, PREFIX_KEY, GRANULARITY_KEY, REGION_KEY)

#: Node metadata that tells the backend which input an output of the region overwrites.
ALIAS_META = "torchtrt_aliases_input"

#: operator: one XNNPACK call per operator with what fuses into it, each a layer of its own with its own time;
#: fused: as large XNNPACK calls as possible, faster, with layer times in XNNPACK's whole microseconds.
GRANULARITIES: tuple[str, ...] = ("operator", "fused")


def compile_specs(
    *,
    level: str | None = None,
    format: str | None = None,
    path_prefix: str | PathLike[str] | None = None,
    granularity: str = "operator",
    region: str | None = None,
) -> list[Any]:
    """Return executorch compile specs; what is None is left to the runtime's own default.

    Raises
    ------
    OptionError
        For a value that the key cannot have.
    """
    from executorch.exir.backend.compile_spec_schema import CompileSpec

    values: dict[str, str] = {}
    if level is not None:
        values[LEVEL_KEY] = check_choice("profile_level", level, LEVELS)
    if format is not None:
        values[FORMAT_KEY] = check_choice("profile_format", format, FORMATS)
    if path_prefix is not None:
        values[PREFIX_KEY] = check_path_prefix("profile_path_prefix", path_prefix)
    values[GRANULARITY_KEY] = check_choice("granularity", granularity, GRANULARITIES)
    if region is not None:
        values[REGION_KEY] = region
    return [CompileSpec(key, value.encode()) for key, value in values.items()]


def spec_values(specs: Iterable[Any]) -> dict[str, str]:
    """Return the text of each compile spec of ours; others are left alone.

    Raises
    ------
    OptionError
        For a value that is not UTF-8.
    """
    values = {}
    for spec in specs:
        if spec.key in KEYS:
            try:
                values[spec.key] = bytes(spec.value).decode()
            except UnicodeDecodeError as error:
                raise OptionError(spec.key, bytes(spec.value), "UTF-8 text") from error
    return values


def check_specs(specs: Iterable[Any]) -> dict[str, str]:
    """Check the compile specs that a caller made himself and return them as :func:`spec_values` does.

    Raises
    ------
    OptionError
        For a key that starts with ``torchtrt_`` and is none of ours, and for an impossible value.
    """
    specs = list(specs)
    for spec in specs:
        if spec.key.startswith("torchtrt_") and spec.key not in KEYS:
            raise OptionError(
                spec.key, bytes(spec.value), f"no such compile spec; there are {', '.join(KEYS)}"
            )
    values = spec_values(specs)
    for key, choices in ((LEVEL_KEY, LEVELS), (FORMAT_KEY, FORMATS), (GRANULARITY_KEY, GRANULARITIES)):
        if key in values:
            check_choice(key, values[key], choices)
    if PREFIX_KEY in values:
        check_path_prefix(PREFIX_KEY, values[PREFIX_KEY])
    return values
