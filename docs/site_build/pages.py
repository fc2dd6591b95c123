"""A hook of mkdocs: the pages that are made of something else, so that nothing is written twice.

The start page is the README, the API pages list the names in the packages' stubs, the tables of frames come
from `torchtrt_viz.schema`, and the notebooks become pages of their text, code and outputs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"README.md": "index.md"} | {
    f"{name}.md": f"{name.lower()}.md"
    for name in ("ARCHITECTURE", "CONTRIBUTING", "CHANGELOG", "THIRD_PARTY")
}
PICTURES = [*sorted((ROOT / "notebooks" / "images").glob("*.png")), ROOT / "benchmarks" / "cluster.svg"]
NAMESPACES = {
    "top": (
        "torchtrt_viz",
        "The names of `import torchtrt_viz as tv`. All are loaded on first use: the import itself loads "
        "neither pandas nor torch.",
    ),
    "analysis": ("torchtrt_viz.analysis", "A trace goes in, a frame comes out; nothing is drawn."),
    "capture": ("torchtrt_viz.capture", "What captures use, beside `tv.profile` and `tv.Program`."),
    "aot": ("torchtrt_viz.aot", "Ahead-of-time compilation into `.pte` and `.pt2`."),
    "serving": ("torchtrt_viz.serving", "Profiles of serving engines: many processes, one session."),
    "widgets": ("torchtrt_viz.widgets", "Timelines, tables and charts for notebooks."),
    "errors": ("torchtrt_viz.errors", "Every exception that the package raises on purpose."),
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made here, and the pictures they show."""
    for page, content in _texts():
        files.append(File.generated(config, page, content=content))
    for path in PICTURES:
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        page, pictures = _notebook(path)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=page))
        for name, content in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def _texts() -> Iterator[tuple[str, str]]:
    for source, page in PAGES.items():
        yield page, _relinked((ROOT / source).read_text())
    for page, (package, about) in NAMESPACES.items():
        yield f"api/{page}.md", _namespace(package, about)
    yield "schema.md", _schema()


def _relinked(text: str) -> str:
    """Lead the links between documents to their pages."""
    return re.sub(r"\]\((\w+\.md)\)", lambda found: f"]({PAGES.get(found[1], found[1])})", text)


def _namespace(package: str, about: str) -> str:
    """Return the page of a package; a name that another page documents is a link to it."""
    inner = tuple(f"{other}." for other, _ in NAMESPACES.values() if other.startswith(f"{package}."))
    lines = [f"# {package}", "", about, ""]
    names = list(_public(package))
    links = [f"- [`{name.rpartition('.')[2]}`][{name}]" for name in names if name.startswith(inner)]
    if links:
        lines += ["Documented on the pages of their packages:", "", *links, ""]
    for name in names:
        if not name.startswith(inner):
            lines += [f"::: {name}", ""]
    return "\n".join(lines)


def _public(package: str) -> Iterator[str]:
    """Yield where the public names of a package are defined. Its modules have pages, but for `charts`."""
    folder = ROOT.joinpath(*package.split("."))
    if not folder.is_dir():
        tree = ast.parse(folder.with_suffix(".py").read_text())
        yield from (f"{package}.{node.name}" for node in tree.body if isinstance(node, ast.ClassDef))
        return
    for node in ast.parse((folder / "__init__.pyi").read_text()).body:
        if not isinstance(node, ast.ImportFrom):
            continue
        for alias in node.names:
            if node.module and not alias.name.startswith("_"):
                yield f"{package}.{node.module}.{alias.name}"
            elif alias.name == "charts":
                yield f"{package}.charts"


def _schema() -> str:
    from torchtrt_viz import schema

    lines = [
        "# Frames and columns",
        "",
        "What `torchtrt_viz.schema` documents: `tv.schema.frames()` lists these frames, and",
        '`tv.schema.table("operators").describe()` returns one of the tables below. Times are integer',
        "nanoseconds; what was not collected is missing, never 0.",
    ]
    for row in schema.frames().to_dict("records"):
        name, meaning = row["name"], _text(row["meaning"])
        anchor = re.sub(r"[^\w.]+", "-", name).strip("-")
        lines += ["", f"## {name} {{#schema.{anchor}}}", ""]
        lines += [f"`{row['call']}`: {meaning}" if meaning else f"`{row['call']}`", ""]
        lines += ["| column | dtype | unit | meaning |", "| --- | --- | --- | --- |"]
        for column in schema.table(name).columns:
            cells = (f"`{column.name}`", column.dtype, column.unit, _text(column.meaning))
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    """Keep the characters that Markdown would read as markup, outside of code."""
    parts = re.split(r"(`+[^`]*`+)", text.replace("\n", " "))
    return "".join(part if part.startswith("`") else re.sub(r"([<*_\[])", r"\\\1", part) for part in parts)


def _notebook(path: Path) -> tuple[str, dict[str, bytes]]:
    """Return a notebook's text, code and outputs, and the pictures that the page shows, by file name."""
    from nbconvert import MarkdownExporter

    names = {"unique_key": path.stem, "output_files_dir": "pictures"}
    text, resources = MarkdownExporter().from_filename(str(path), resources=names)
    source = f"\n\n---\n\nThis page is `notebooks/{path.name}` of the repository.\n"
    return text + source, resources["outputs"]
