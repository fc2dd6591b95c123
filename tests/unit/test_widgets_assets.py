"""The front end's modules, joined into one."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from torchtrt_viz.scene import assets


@pytest.mark.parametrize("entry", ["widget", "table", "report", "chart_view"])
def test_the_joined_module_is_valid_and_imports_nothing(entry, tmp_path):
    text = assets.module(entry)
    assert not re.search(r"^\s*import\b", text, re.MULTILINE)
    assert text.count("export default") == (0 if entry == "report" else 1)
    assert "</script" not in text.lower()
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: the browser tests load the module instead")
    file = tmp_path / "joined.mjs"
    file.write_text(text)
    subprocess.run([node, "--check", file], check=True)


def test_every_module_comes_after_what_it_imports():
    text = assets.module("widget")
    order = re.findall(r"^const m_(\w+) = ", text, re.MULTILINE)
    assert len(order) == len(set(order))
    for name in order:
        source = (assets.STATIC / f"{name}.js").read_text()
        for other in re.findall(r'^import .* from "\./(\w+)\.js"', source, re.MULTILINE):
            assert order.index(other) < order.index(name)


def test_nothing_is_fetched_and_no_markup_is_parsed():
    for file in assets.STATIC.glob("*.js"):
        source = file.read_text()
        assert "http" not in source, file
        for forbidden in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "fetch(",
        ):
            assert forbidden not in source, (file, forbidden)
    for file in assets.STATIC.glob("*.css"):
        assert "url(" not in file.read_text()
        assert "@import" not in file.read_text()


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A function that writes modules in the place of the real ones."""
    monkeypatch.setattr(assets, "STATIC", tmp_path)
    assets.module.cache_clear()

    def write(**sources):
        for name, source in sources.items():
            (tmp_path / f"{name}.js").write_text(source)

    yield write
    assets.module.cache_clear()


def test_circles_are_refused(files):
    files(
        a='import { b } from "./b.js";\nexport const a = b;\n',
        b='import { a } from "./a.js";\nexport const b = a;\n',
    )
    with pytest.raises(ValueError, match="a -> b -> a"):
        assets.module("a")


@pytest.mark.parametrize(
    "line",
    [
        'import * as all from "./b.js";',
        'import b from "./b.js";',
        'import "./b.js";',
        'import { b as c } from "./b.js";',
        "import { b } from './b.js';",
        'import { b } from "b";',
        'import { b } from "../b.js";',
        'import { b } from "./b.js"',
        'import { b } from "./b.js"; import { c } from "./c.js";',
        "import {",
        'const b = await import("./b.js");',
        "const here = import.meta.url;",
        "export { a };",
        "export { a as default };",
        'export * from "./b.js";',
        'export { b } from "./b.js";',
        "export let a = 1;",
        "export var a = 1;",
        "export const { a } = { a: 1 };",
        "export const [a] = [1];",
        "export function* a() {}",
        "  export const a = 1;",
        "/* now */ export const a = 1;",
        "export default 1; export const a = 1;",
        'const text = "export";',
    ],
)
def test_a_form_that_it_does_not_know_is_refused(files, line):
    files(a=f"// import and export may be spoken of\n{line}\n", b="export const b = 1;\n")
    with pytest.raises(ValueError, match=r"static/a\.js, line 2: cannot join"):
        assets.module("a")


def test_a_name_that_is_not_exported_is_refused(files):
    files(a='import { b, c } from "./b.js";\n', b="export const b = 1,\n  c = 2;\n")
    with pytest.raises(ValueError, match=r"static/a\.js imports 'c', which static/b\.js does not export"):
        assets.module("a")


def test_a_second_default_is_refused(files):
    files(a="export default 1;\nexport default 2;\n")
    with pytest.raises(ValueError, match="line 2: cannot join"):
        assets.module("a")


def test_comments_may_speak_of_imports_and_exports(files):
    files(
        a='/** @import { T } from "./types.js" */\n/**\n * import { x } from "./x.js";\n export */\n'
        'import { b } from "./b.js";\n// export const c = 1;\nexport default b;\n',
        b="export async function f() {}\nexport class C {}\nexport function g() {}\nexport const b = 1;\n",
    )
    text = assets.module("a")
    assert "const { b } = m_b;" in text
    assert "return { f, C, g, b };" in text
    assert text.endswith("export default m_a.default;\n")
