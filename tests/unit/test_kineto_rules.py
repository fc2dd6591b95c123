"""Rules that give an event another kind because of its name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from trace_events import complete

from torchtrt_viz._native import native


def kind_of(name: str, *rules: tuple[str, str, int, int]) -> int:
    decoder = native("kineto").Decoder(
        categories={"cpu_op": (1, 0)}, rules=list(rules), other=(0, -1), step_kind=9, kept_keys=[]
    )
    decoder.feed(json.dumps({"traceEvents": [complete(name, 1, 1)]}).encode())
    found: dict[str, Any] = decoder.finish()
    return int(found["spans"]["kind"][0])


@pytest.mark.parametrize(
    ("how", "met", "not_met"),
    [
        ("equals", "nccl", "nccl:send"),
        ("starts", "nccl:send", "a nccl"),
        ("contains", "a nccl", "send(nccl)"),
    ],
)
def test_a_rule_gives_its_kind_to_the_names_that_it_means(how: str, met: str, not_met: str) -> None:
    assert kind_of(met, (how, "nccl", 1, 5)) == 5
    assert kind_of(not_met, (how, "nccl", 1, 5)) == 1
    assert kind_of(met, (how, "nccl", 2, 5)) == 1


@pytest.mark.parametrize("word", ["prefix", "Contains", ""])
def test_an_unknown_word_of_a_rule_is_named_with_the_choices(word: str) -> None:
    with pytest.raises(ValueError, match=rf"'{word}': choose equals, starts or contains"):
        kind_of("x", ("equals", "x", 1, 5), (word, "x", 1, 5))
