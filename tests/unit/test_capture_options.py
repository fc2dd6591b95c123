"""One table of options: what is refused, with which message, and how a command line says it."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from torchtrt_viz.capture.options import CaptureOptions, arguments, capture_options, options_table
from torchtrt_viz.errors import OptionError
from torchtrt_viz.runtime.profile_settings import LEVELS, check_path_prefix


def test_defaults_are_cheap():
    options = capture_options()
    assert options.level == "phases"
    assert options.format == "etdump"
    costly = ("record_shapes", "with_stack", "profile_memory", "with_flops")
    assert not any(getattr(options, name) for name in costly)


@pytest.mark.parametrize(
    ("given", "key", "said"),
    [
        ({"level": "layer"}, "level", "did you mean 'layers'"),
        ({"level": 3}, "level", "off, delegate, phases, layers"),
        ({"level": None}, "level", "one of"),
        ({"format": "json"}, "format", "etdump, perfetto, trex"),
        ({"path_prefix": ""}, "path_prefix", "non-empty"),
        ({"path_prefix": "  "}, "path_prefix", "non-empty"),
        ({"path_prefix": 5}, "path_prefix", "a path"),
        ({"path_prefix": "a\0b"}, "path_prefix", "NUL"),
        ({"path_prefix": "ä" * 128}, "path_prefix", "255 bytes"),
        ({"activities": "gpu"}, "activities", "cpu, cuda"),
        ({"activities": 7}, "activities", "cpu, cuda"),
        ({"record_shapes": "yes"}, "record_shapes", "True or False"),
        ({"record_shape": True}, "record_shape", "did you mean 'record_shapes'"),
        ({"format": "trex", "level": "layers"}, "path_prefix", "give the folder"),
    ],
)
def test_what_cannot_be_is_refused_and_named(given, key, said):
    with pytest.raises(OptionError) as raised:
        capture_options(given)
    assert raised.value.key == key
    assert said in str(raised.value)


def test_the_longest_prefix_that_fits_is_taken():
    assert check_path_prefix("path_prefix", "x" * 255) == "x" * 255
    assert check_path_prefix("path_prefix", Path("a") / "b") == "a/b"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("auto", "auto"),
        ("none", ()),
        (None, ()),
        ("cuda,cpu", ("cpu", "cuda")),
        (["cuda"], ("cuda",)),
        ((), ()),
    ],
)
def test_activities_come_in_many_forms(value, expected):
    assert capture_options(activities=value).activities == expected


def test_flops_need_shapes():
    assert capture_options(with_flops=True).record_shapes is True


def test_every_option_is_an_argument_and_comes_back():
    parser = argparse.ArgumentParser()
    for flag, keywords in arguments():
        parser.add_argument(flag, **keywords)
    assert vars(parser.parse_args([])) == dict.fromkeys([option.name for option in options_table()])
    line = ["--level", "layers", "--activities", "none", "--with-stack"]
    given = {k: v for k, v in vars(parser.parse_args(line)).items() if v is not None}
    assert capture_options(given) == CaptureOptions(level="layers", activities=(), with_stack=True)
    assert all(level in parser.format_help() for level in LEVELS)


def test_as_dict_is_plain_json():
    import json

    values = json.loads(json.dumps(capture_options(activities="cpu").as_dict()))
    assert values["activities"] == ["cpu"]
