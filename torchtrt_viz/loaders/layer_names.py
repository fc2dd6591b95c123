"""What a layer's name says: the operators fused into it, where they are in the model, and what wraps them.

TensorRT joins the names of fused layers with `` + `` and wraps them: ``PWN(...)`` around pointwise fusions,
``{ForeignNode[first...last]}`` around regions that another compiler took, ``Reformatting CopyNode for Input
Tensor 0 to X``, ``reshape_before_X``, ``X_myl5_2``. Torch-TensorRT names each layer
``[KIND]-[target]-[module path]``; exporters to ONNX write the module path itself (``/layer1/layer1.0/Conv``).

A name says which operators were recorded, never how the time of a fused layer splits among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["LayerName", "Part", "common_path", "onnx_layers", "parse_name", "split_fusion"]

_MAX_UNWRAPS = 32
_REFORMAT = re.compile(
    r"Reformatting CopyNode for (?:(Input|Output) )?Tensor (\d+)? ?(?:to|from) (.*)", re.DOTALL
)
_CAST = re.compile(
    r"Forced Cast ITensor (?P<tensor>.*) from DataType\.(\w+) to DataType\.(\w+) - (?P<op>.*)", re.DOTALL
)
_PREFIX = re.compile(
    r"(?:copied_)?(?:(?:reshape|squeeze|unsqueeze|transpose|shuffle)(?:_node)?_(?:before|after)_)"
    r"|dummy_shape_call_?(?=__mye)"
)
#: A name without anything around it: no blank, no bracket, no word that a wrapper begins with.
_BARE = re.compile(r"(?!dummy_|copied_|reshape_|(?:un)?squeeze_|transpose_|shuffle_)[\w./:-]+")
_FOREIGN = re.compile(r"\{ForeignNode\[(.*)\]\}", re.DOTALL)
_PROFILE = re.compile(r" ?\[profile (\d{1,9})\]")
_MYELIN_KERNEL = re.compile(r"__(?:myl_(?P<ops>\w*?)|mye\d+_\d+)_myl(?P<graph>\d{1,9})_\d+")
_MYELIN_SUFFIX = re.compile(r"_myl(\d{1,9})_\d+$")
_TORCHTRT = re.compile(r"\[(?P<kind>[A-Za-z_0-9 ]+)\]-\[(?P<target>[^\[\]]*)\](?:-\[(?P<path>[^\[\]]*)\])?")
#: Myelin writes underscores for hyphens and dots: [MATRIX_MULTIPLY]_[aten_ops_addmm_default]_[/x/y]
_TORCHTRT_MANGLED = re.compile(r"\[(?P<kind>[A-Z_0-9]+)\]_\[(?P<target>[^\[\]]*)\]_\[(?P<path>[^\[\]]*)\]")
_CAST_OPERATOR = re.compile(r"\[(?P<target>[^\[\]]*)\](?:-\[(?P<path>[^\[\]]*)\])?")
_ONNX_JOINT = re.compile(r"[\x1e\x1f]|(?<=\])(?=\[ONNX Layer: )")
_OPEN, _CLOSE = "([{", ")]}"
_TOKENS = {separator: re.compile(rf"[()\[\]{{}}]|{re.escape(separator)}") for separator in (" + ", ", ")}


class Part(NamedTuple):
    """One operator inside a layer.

    ``kind`` is TensorRT's kind of layer and ``target`` the operator it came from (Torch-TensorRT names
    only); ``path`` is the module path with the operator's own name last, and ``module`` the path without it.
    """

    text: str
    kind: str | None = None
    target: str | None = None
    path: str | None = None

    @property
    def module(self) -> str | None:
        """Path of the module that holds the operator; "/" is the model itself."""
        return None if self.path is None else parent_path(self.path)


class LayerName:
    """A name taken apart.

    Attributes
    ----------
    wrapper
        "reformat", "cast", "helper" (a reshape or copy around the named layer), "pointwise", "region",
        "myelin" (one kernel of a compiled region), or None.
    parts
        Operators that the name records, in order. Of a region only the first and the last are recorded.
    operators
        Operators of the parts: the target where it is recorded, else the part's own text.
    module
        Module path that the recorded parts have in common; None when no part records one. Of a region only
        its ends are recorded, so both have to have a path.
    profile
        Optimisation profile that the name carries, None without one.
    myelin_graph
        Number of the compiled region that a Myelin kernel belongs to.
    shorthand
        Myelin's abbreviation of the operators in a generated kernel (``MaxrSubExpSum``).
    """

    __slots__ = ("_found", "_parts", "module", "myelin_graph", "operators", "profile", "shorthand", "wrapper")

    def __init__(
        self,
        wrapper: str | None,
        parts: tuple[Part, ...],
        profile: int | None = None,
        myelin_graph: int | None = None,
        shorthand: str | None = None,
    ) -> None:
        self.wrapper = wrapper
        self._parts: tuple[Part, ...] | None = parts
        self._found: list[tuple[str, str, str]] = []
        self.profile = profile
        self.myelin_graph = myelin_graph
        self.shorthand = shorthand
        self.operators = tuple([part.target or part.text for part in parts])
        if wrapper == "region" and any(part.path is None for part in parts):
            self.module = None
        else:
            self.module = common_path(part.module for part in parts)

    @classmethod
    def plain(cls, found: list[tuple[str, str, str]]) -> LayerName:
        """Make the name of layers fused and not wrapped, from (kind, target, path) of each."""
        name = cls.__new__(cls)
        name.wrapper = name.profile = name.myelin_graph = name.shorthand = name._parts = None
        name._found = found  # most names are never asked for their parts
        name.operators = tuple([target for _, target, _ in found])
        name.module = _common_parent([path for _, _, path in found if path])
        return name

    @property
    def parts(self) -> tuple[Part, ...]:
        """Operators that the name records."""
        if self._parts is None:
            self._parts = tuple(Part(f"[{k}]-[{t}]-[{p}]", k, t, _clean(p)) for k, t, p in self._found)
        return self._parts


def split_fusion(text: str, separator: str = " + ") -> list[str]:
    """Split at separators (`` + `` or ``, ``) that are outside of brackets.

    A bracket that never closes takes the rest of the text into its part.
    """
    if separator not in text:
        return [text]
    parts, depth, begin = [], 0, 0
    for match in _TOKENS[separator].finditer(text):
        token = match.group()
        if token in _OPEN:
            depth += 1
        elif token in _CLOSE:
            depth = max(depth - 1, 0)
        elif depth == 0:
            parts.append(text[begin : match.start()])
            begin = match.end()
    parts.append(text[begin:])
    return [p for p in parts if p]


def parent_path(path: str) -> str:
    """Return the path without its last component."""
    head = path.rsplit("/", 1)[0]
    return head or "/"


def common_path(paths: Iterable[str | None]) -> str | None:
    """Return the longest path that begins all given paths; None when there are none."""
    common: list[str] | None = None
    for path in dict.fromkeys(paths):
        if path is None:
            continue
        steps = [step for step in path.split("/") if step]
        if common is None:
            common = steps
        else:
            same = 0
            for a, b in zip(common, steps, strict=False):
                if a != b:
                    break
                same += 1
            common = common[:same]
    return None if common is None else "/" + "/".join(common)


def onnx_layers(metadata: str) -> tuple[str, ...]:
    """Return the ONNX nodes that a layer's Metadata lists, in order and each once.

    TensorRT separates them by 0x1E (fused layers) and 0x1F (inside Myelin kernels); logs drop both.
    """
    if metadata.startswith("[ONNX Layer: ") and metadata.find("]") == len(metadata) - 1:
        return (metadata[len("[ONNX Layer: ") : -1],)  # one node, without a bracket in its name
    found = (piece.strip() for piece in _ONNX_JOINT.split(metadata))
    named = (
        p[len("[ONNX Layer: ") : -1] if p.startswith("[ONNX Layer: ") and p[-1] == "]" else p for p in found
    )
    return tuple(dict.fromkeys(name for name in named if name))


def parse_name(name: str) -> LayerName:
    """Take a layer's name apart; any text is accepted."""
    if name.startswith("["):
        plain = _plain_fusion(name)
        if plain is not None:
            return plain
    profile = None
    if "[profile " in name and (found := _PROFILE.search(name)):
        profile = int(found.group(1))
        name = _PROFILE.sub("", name)
    wrapper, body = (None, name) if _BARE.fullmatch(name) else _unwrap(name)
    if wrapper == "cast":
        match = _CAST.fullmatch(body)
        assert match is not None
        operator = _CAST_OPERATOR.match(match.group("op"))
        part = (
            Part(match.group("op"))
            if operator is None
            else Part(match.group("op"), "CAST", operator.group("target"), _clean(operator.group("path")))
        )
        return LayerName("cast", (part,), profile)
    myelin = "_myl" in body
    kernel = _MYELIN_KERNEL.fullmatch(body) if myelin else None
    if kernel is not None:
        return LayerName(
            wrapper or "myelin",
            (),
            profile,
            int(kernel.group("graph")),
            kernel.group("ops") or None,
        )
    graph = None
    if myelin and (suffix := _MYELIN_SUFFIX.search(body)) is not None:
        graph = int(suffix.group(1))
        body = body[: suffix.start()]
        wrapper = wrapper or "myelin"
    region = _FOREIGN.fullmatch(body) if body.startswith("{") else None
    if region is not None:
        parts = tuple(_part(text) for text in _ends(region.group(1)))
        return LayerName(wrapper or "region", parts, profile, graph)
    parts = tuple(part for text in split_fusion(body) for part in _parts(text))
    return LayerName(wrapper, parts, profile, graph)


def _plain_fusion(name: str) -> LayerName | None:
    """Read the most frequent form, Torch-TensorRT names joined and not wrapped, in one pass."""
    found = _TORCHTRT.findall(name)
    if not found or " + ".join([f"[{kind}]-[{target}]-[{path}]" for kind, target, path in found]) != name:
        return None
    return LayerName.plain(found)


def _common_parent(paths: list[str]) -> str | None:
    """Return `common_path` of the parents of paths that are as Torch-TensorRT writes them."""
    if not paths:
        return None
    cleaned = [path if path[0] == "/" else _clean(path) or "/" for path in paths]
    # what the outermost two in order have in common, all have
    low, high = min(cleaned).split("/"), max(cleaned).split("/")
    same, most = 1, min(len(low), len(high)) - 1  # the last step is the operator itself
    while same < most and low[same] == high[same]:
        same += 1
    return "/".join(low[:same]) or "/"


def _unwrap(name: str) -> tuple[str | None, str]:
    """Strip what stands around the name of the layer itself; the outermost wrapper names the role."""
    wrapper = None
    for _ in range(_MAX_UNWRAPS):
        if name.startswith("Reformatting CopyNode") and (match := _REFORMAT.fullmatch(name)):
            wrapper, name = wrapper or "reformat", match.group(3)
        elif name.startswith("Forced Cast ITensor") and _CAST.fullmatch(name):
            return "cast", name
        elif (match := _PREFIX.match(name)) and match.end() < len(name):
            wrapper, name = wrapper or "helper", name[match.end() :]
        elif name.startswith("PWN(") and name.endswith(")") and len(split_fusion(name)) == 1:
            wrapper = wrapper or "pointwise"
            break
        else:
            break
    return wrapper, name


def _parts(text: str) -> list[Part]:
    """Parts of one fused element, which may itself be a pointwise fusion, nested as deep as is plausible."""
    out: list[Part] = []
    work = [(text, 0)]
    while work:
        text, depth = work.pop()
        if text.startswith("PWN(") and text.endswith(")") and depth < _MAX_UNWRAPS:
            arguments = split_fusion(text[4:-1], ", ")
            inner = [(piece, depth + 1) for argument in arguments for piece in split_fusion(argument)]
            work.extend(reversed(inner))
        else:
            out.append(_part(text))
    return out


def _part(text: str) -> Part:
    if "]" in text:
        match = _TORCHTRT.search(text) or _TORCHTRT_MANGLED.fullmatch(text)
        if match is not None:
            return Part(text, match.group("kind"), match.group("target"), _clean(match.group("path")))
    helper = _PREFIX.match(text)
    bare = text[helper.end() :] if helper else text
    return Part(text, path=_clean(bare) if _is_path(bare) else None)


def _is_path(text: str) -> bool:
    """Tell whether an ONNX node name is a module path: ``/Flatten``, or two steps; not ``read:0``."""
    return (text.startswith("/") or "/" in text.strip("/")) and not any(c in text for c in " \t()[]{}+,:")


def _clean(path: str | None) -> str | None:
    """Return a path that begins with "/"; ``__/x`` stands for operators of the model itself."""
    if not path:
        return None
    if path.startswith("__/"):
        path = path[2:]
    return path if path.startswith("/") else "/" + path


def _ends(text: str) -> list[str]:
    """First and last name of a region, ``first...last``.

    Names may end in dots themselves (``x.weight.../softmax``), so the separator is the last three dots of a
    run, and that between balanced brackets where there are several.
    """
    depth = 0
    best = -1
    for match in re.finditer(r"\.{3,}|[\[\](){}]", text):
        piece = match.group()
        if piece in ("[", "(", "{"):
            depth += 1
        elif piece in ("]", ")", "}"):
            depth = max(depth - 1, 0)
        elif depth == 0 and best < 0:
            best = match.end() - 3
    if best < 0:
        return [text]
    return [end for end in (text[:best], text[best + 3 :]) if end]
