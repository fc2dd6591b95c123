"""The front end's modules, joined into one."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from torchtrt_viz.scene import assets


@pytest.mark.parametrize("entry", ["widget", "report"])
def test_the_joined_module_is_valid_and_imports_nothing(entry, tmp_path):
    text = assets.module(entry)
    assert not re.search(r"^\s*import\b", text, re.MULTILINE)
    assert text.count("export default") == (1 if entry == "widget" else 0)
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
        for other in re.findall(r'from "\./(\w+)\.js"', source):
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


def test_circles_and_unknown_forms_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(assets, "STATIC", tmp_path)
    (tmp_path / "a.js").write_text('import { b } from "./b.js";\nexport const a = b;\n')
    (tmp_path / "b.js").write_text('import { a } from "./a.js";\nexport const b = a;\n')
    (tmp_path / "c.js").write_text('import * as all from "./b.js";\n')
    assets.module.cache_clear()
    with pytest.raises(ValueError, match="a -> b -> a"):
        assets.module("a")
    with pytest.raises(ValueError, match="cannot join"):
        assets.module("c")
    assets.module.cache_clear()
