"""The language of searches: what is read, where it fails, and that both readers agree."""

from __future__ import annotations

import json
import random
import shutil
import subprocess

import pytest

from torchtrt_viz.errors import QueryError
from torchtrt_viz.scene import assets
from torchtrt_viz.scene.query import FIELDS, javascript, parse


def term(field, rel, *values, key=""):
    return {"op": "term", "field": field, "key": key, "rel": rel, "values": list(values)}


def named(text):
    return term("name", "contains", text)


READ = {
    "": None,
    " \t ": None,
    "gemm": named("gemm"),
    "flash  attention": named("flash  attention"),
    "aten::add_": named("aten::add_"),
    "nccl:all_reduce": named("nccl:all_reduce"),
    "void f<4, float>(int*)": named("void f<4, float>(int*)"),
    '"kind:kernel"': named("kind:kernel"),
    r'"a \"b\" \\"': named('a "b" \\'),
    "KIND:Kernel": term("kind", "=", "kernel"),
    "kind:memcpy,memset": term("kind", "=", "memcpy", "memset"),
    "dur>50us": term("dur", ">", 50_000),
    "dur > 1.5 ms": term("dur", ">", 1_500_000),
    "start:50us..1ms": term("start", "in", 50_000, 1_000_000),
    "start>=0": term("start", ">=", 0),
    "name~gemm|conv": term("name", "~", "gemm|conv"),
    "name!~(a|b)": term("name", "!~", "(a|b)"),
    "stream:7,20": term("stream", "=", "7", "20"),
    "rank:0..3": term("rank", "in", 0, 3),
    "rank!=1": term("rank", "!=", 1),
    'args."Input Dims":3': term("args", "contains", "3", key="Input Dims"),
    "args.grid>=2.5": term("args", ">=", 2.5, key="grid"),
    "args:fp16": term("args", "contains", "fp16"),
    "a kind:kernel b": {"op": "and", "of": [named("a"), term("kind", "=", "kernel"), named("b")]},
    "a and b or not c": {
        "op": "or",
        "of": [{"op": "and", "of": [named("a"), named("b")]}, {"op": "not", "of": [named("c")]}],
    },
    "(name~x(y) or b) c": {
        "op": "and",
        "of": [{"op": "or", "of": [term("name", "~", "x(y)"), named("b")]}, named("c")],
    },
}
WRONG = {
    "dur>": (4, "a value after dur>"),
    "x dur>50": (6, "a time with its unit"),
    "dur>50usx": (4, "a time with its unit"),
    "dur~5": (3, "one of : = != < <= > >= after dur"),
    "kind:kernle": (5, "one of method, operator"),
    "a knd:kernel": (2, "such as kind; a name that looks like one is put in double quotes"),
    "stream:7 or": (11, "a term"),
    "(a or b": (0, '")" for this "("'),
    'a "b': (2, "a quote that ends"),
    "name~[": (5, "a regular expression"),
    "rank:x": (5, "a whole number"),
    "not ": (4, "a term"),
    "é dur>1": (6, "a time with its unit"),
    "(" * 200: (100, "no more than 100"),
}


@pytest.mark.parametrize("text", READ)
def test_what_is_read(text):
    assert parse(text) == READ[text]


@pytest.mark.parametrize("text", WRONG)
def test_what_cannot_be_read_is_said_with_its_place(text):
    with pytest.raises(QueryError) as caught:
        parse(text)
    at, expected = WRONG[text]
    assert caught.value.at == at
    assert expected in caught.value.expected
    assert f"character {at + 1}" in str(caught.value)


def test_the_browser_reads_the_same():
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    chance = random.Random(5)
    pieces = [
        *FIELDS,
        "and",
        "or",
        "not",
        "(",
        ")",
        '"',
        "~",
        ":",
        "=",
        "!=",
        "<",
        ">=",
        "50us",
        "1.1ms",
        "3",
    ]
    pieces += ["kernel", "gemm", "a::b", " ", "  ", "..", ",", "args.x", 'args."k y"', "\\", "knd", "0", "𝄞"]
    texts = [*READ, *WRONG, *("".join(chance.choices(pieces, k=chance.randint(1, 9))) for _ in range(1500))]
    program = f"""
      import {{ parse }} from {json.dumps((assets.STATIC / "query.js").as_uri())};
      import {{ readFileSync }} from "fs";
      const tried = JSON.parse(readFileSync(0)).map((text) => {{
        try {{ return parse(text); }} catch (e) {{ return [e.at, e.expected]; }}
      }});
      console.log(JSON.stringify(tried));"""
    done = subprocess.run(
        [node, "--input-type=module", "-e", program],
        input=json.dumps(texts), capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip

    def tried(text):
        try:
            return parse(text)
        except QueryError as error:
            return [error.at, error.expected]

    for text, theirs in zip(texts, json.loads(done.stdout), strict=True):
        assert theirs == tried(text), text


def test_the_browser_knows_the_same_fields():
    assert (assets.STATIC / "fields.js").read_text(encoding="utf-8") == javascript()
