"""Options of a session: defaults and rules of the RFC, checked before anything starts."""

from __future__ import annotations

import argparse
import json
import os
import pickle

import pytest

from torchtrt_viz.errors import OptionError
from torchtrt_viz.serving import (
    ProfileConfig,
    RankIdentity,
    Settings,
    add_profile_arguments,
    profile_config_from_args,
)


def test_defaults_are_those_of_the_rfc(tmp_path):
    config = ProfileConfig(tmp_path)
    assert config.activities is None
    assert (config.record_shapes, config.with_stack, config.profile_memory, config.with_flops) == (False,) * 4
    assert config.schedule() == {"wait": 0, "warmup": 1, "active": 10, "repeat": 1}
    assert config.supplied_schedule == {}


def test_a_default_that_is_given_is_known_to_be_given(tmp_path):
    config = ProfileConfig(tmp_path, active=10)
    assert config.supplied_schedule == {"active": 10}
    again = pickle.loads(pickle.dumps(config))
    assert again == config
    assert again.supplied_schedule == {"active": 10}
    assert ProfileConfig.from_mapping(config.to_dict()) == config
    assert json.loads(json.dumps(config.to_dict()))["active"] == 10


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("wait", -1),
        ("warmup", -1),
        ("repeat", -1),
        ("active", 0),
        ("active", -3),
        ("active", 2.0),
        ("active", True),
        ("active", "3"),
        ("wait", 10**12),
        ("record_shapes", 1),
        ("with_stack", "yes"),
        ("profile_memory", None),
        ("activities", []),
        ("activities", ["gpu"]),
        ("activities", ["cpu", "cpu"]),
        ("activities", [3]),
        ("activities", 3),
        ("output_dir", ""),
        ("output_dir", 5),
    ],
)
def test_wrong_values_name_the_option_and_what_is_allowed(tmp_path, field, value):
    with pytest.raises(OptionError) as caught:
        ProfileConfig(**{"output_dir": tmp_path, field: value})
    assert caught.value.key == field
    assert field in str(caught.value)


def test_unknown_options_are_refused_with_the_known_ones(tmp_path):
    with pytest.raises(OptionError, match="output_dir, activities, record_shapes"):
        ProfileConfig.from_mapping({"output_dir": str(tmp_path), "enabled": True})
    with pytest.raises(OptionError, match="output_dir"):
        ProfileConfig.from_mapping({"active": 3})


def test_activities_as_text_or_list(tmp_path):
    assert ProfileConfig(tmp_path, activities="cpu, CUDA").activities == ("cpu", "cuda")
    assert ProfileConfig(tmp_path, activities=["cuda"]).activities == ("cuda",)


def test_a_window_refuses_a_schedule(tmp_path):
    ProfileConfig(tmp_path).check(window=True)
    ProfileConfig(tmp_path, active=3).check(window=False)
    with pytest.raises(OptionError, match="records from start to stop"):
        ProfileConfig(tmp_path, active=10).check(window=True)


def test_the_folder_is_made_and_tried(tmp_path):
    config = ProfileConfig(tmp_path / "a" / "b")
    config.check()
    assert (tmp_path / "a" / "b").is_dir()
    assert list((tmp_path / "a" / "b").iterdir()) == []
    (tmp_path / "file").write_text("x")
    with pytest.raises(OptionError, match="can be made"):
        ProfileConfig(tmp_path / "file" / "sub").check()
    with pytest.raises(OptionError):
        ProfileConfig(tmp_path / "file").check()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a file system that nobody may write to")
def test_a_folder_that_cannot_be_written_is_refused():
    with pytest.raises(OptionError):
        ProfileConfig("/proc/self").check()


def parse(*words: str):
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("--model")
    add_profile_arguments(parser)
    return profile_config_from_args(parser.parse_args(["--model", "m", *words]))


def test_flags_are_the_options(tmp_path):
    assert parse() is None
    config = parse(
        "--profile",
        "--profile-dir",
        str(tmp_path),
        "--profile-activities",
        "cpu,cuda",
        "--profile-record-shapes",
        "--profile-with-stack",
        "--profile-memory",
        "--profile-with-flops",
        "--profile-wait",
        "2",
        "--profile-warmup",
        "0",
        "--profile-active",
        "10",
        "--profile-repeat",
        "0",
    )
    assert config == ProfileConfig(
        tmp_path,
        activities=("cpu", "cuda"),
        record_shapes=True,
        with_stack=True,
        profile_memory=True,
        with_flops=True,
        wait=2,
        warmup=0,
        active=10,
        repeat=0,
    )
    assert parse("--profile", "--profile-dir", "x").schedule() == ProfileConfig("x").schedule()


def test_flags_that_do_not_go_together_are_refused(tmp_path):
    with pytest.raises(OptionError, match="--profile-dir"):
        parse("--profile")
    with pytest.raises(OptionError, match="need --profile as well"):
        parse("--profile-active", "3")
    for words in (("--profile-active", "0"), ("--profile-wait", "-1"), ("--profile-repeat", "x")):
        with pytest.raises((argparse.ArgumentError, SystemExit)):
            parse("--profile", "--profile-dir", str(tmp_path), *words)


def test_help_names_every_flag(capsys):
    parser = argparse.ArgumentParser()
    add_profile_arguments(parser)
    text = parser.format_help()
    for flag in (
        "dir",
        "activities",
        "record-shapes",
        "with-stack",
        "memory",
        "with-flops",
        "wait",
        "repeat",
    ):
        assert f"--profile-{flag}" in text


@pytest.mark.parametrize(
    "wrong",
    [
        {"control_timeout_s": 0},
        {"max_window_s": -1},
        {"min_available_memory": 1.0},
        {"compression_level": 9},
        {"parallel_parses": 0},
    ],
)
def test_settings_are_checked(wrong):
    with pytest.raises(OptionError):
        Settings(**wrong)


def test_identity_is_checked_and_found_out():
    here = RankIdentity.here(role="decode")
    assert (here.rank, here.role, here.pid) == (0, "decode", os.getpid())
    assert here.with_rank(7).rank == 7
    for wrong in ({"rank": -1}, {"rank": True}, {"rank": "1"}, {"role": "x" * 300}):
        with pytest.raises(OptionError):
            RankIdentity(**wrong)
