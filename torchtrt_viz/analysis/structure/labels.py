"""What a thing in a run is called, so that the same thing of another run is called the same.

Each name becomes an exact label (without what belongs to one run or build: numbers of steps, instances of a
module, addresses, hashes of compiled graphs) and a loose one (without what belongs to a maker: namespaces,
vendor prefixes, templates of kernels). `Vocabulary` numbers both for two runs together.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.lasting_names import CONTENT_HASH, lasting_name
from torchtrt_viz.analysis.structure.families import (
    KERNEL_FAMILIES,
    MAKERS,
    METADATA_ONLY,
    OPERATOR_FAMILIES,
    SHORT_WORDS,
)

__all__ = [
    "MODULE",
    "MODULE_FRAME",
    "OUTSIDE",
    "THREAD",
    "WORK",
    "Vocabulary",
    "base_name",
    "fused_words",
    "generated_name",
    "split_words",
    "words",
]

Ints = NDArray[np.int64]

MODULE, THREAD, OUTSIDE = "module", "thread", "outside"
WORK = ("kernel", "memcpy", "memset", "collective")
"""Kinds of what devices execute."""

MODULE_FRAME = re.compile(r"^nn\.Module: ")
"""Frames of Python that are calls of modules."""

_PLACES = ("run", THREAD, OUTSIDE)
_MODULE = re.compile(r"^nn\.Module: (.*?)(?:_\d+)?$", re.DOTALL)
_COMPILED = re.compile(
    r"(?<=CompiledFxGraph )\w{20,}|(?<=Torch-Compiled Region: )\S+|(?<=CompiledFunction)\d+"
)
_GENERATED = re.compile(r"^(?:graph_\d+_)?((?:triton|cpp)_\w*?fused_\w+?)(?:_\d+)?$")
_FUSED = re.compile(r"(?:^|_)fused_(\w+)$")
_NUMBER = re.compile(r"\d+")
_HINT = re.compile(
    r"(?:CUDAFunctor_|CUDAFunctorOnSelf_|CUDAFunctorOnOther_)(\w+)|(\w+?)(?:_kernel_cuda|_kernel_impl|KernelImpl)"
    r"|(\w+)Functor\b|(\w+)Op[<,]"
)
#: Of longer names so much is looked at: expressions may take the square of it.
_LONGEST = 1000
_RANGES = re.compile(r"^(?:TorchDynamo |Torch-Compiled Region|Pregraph bytecode|AOTDispatcher |## .* ##)")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@lru_cache(maxsize=1 << 16)
def exact_label(kind: str, name: str) -> str:
    """Return the name without what belongs to one run or one build."""
    name = lasting_name(name)
    if kind == MODULE:
        found = _MODULE.match(name)
        return found[1] if found else name
    if kind in ("operator", "annotation", "kernel"):
        return generated_name(name) or _COMPILED.sub("", name)
    if kind in ("method", "delegate", "phase", "layer"):
        return CONTENT_HASH.sub("", name)
    return name


def generated_name(name: str) -> str | None:
    """Return the name of generated code without its number; None for other code."""
    found = _GENERATED.match(name) if len(name) <= _LONGEST else None
    return found[1] if found else None


@lru_cache(maxsize=1 << 16)
def loose_label(kind: str, exact: str) -> str:
    """Return what the thing does, whoever made it."""
    if kind in WORK:
        return _kernel(exact)
    if kind in ("operator", "communication"):
        return base_name(exact)
    return _NUMBER.sub("#", exact)


def base_name(name: str) -> str:
    """Return an operator's name without namespace, overload, maker and underscores at its ends."""
    plain = name.rpartition("::")[2].partition(".")[0].strip("_")
    plain = MAKERS.sub("", plain).strip("_") or plain
    for family, pattern in OPERATOR_FAMILIES:
        if pattern.match(plain):
            return family
    return plain


def _kernel(name: str) -> str:
    if generated_name(name):
        return name
    head = name[:_LONGEST]
    for family, pattern in KERNEL_FAMILIES:
        if pattern.search(head):
            if family != "elementwise":
                return family
            hint = _HINT.search(head)
            what = next((part for part in hint.groups() if part), "") if hint else ""
            return f"{family} {what.lower()}".strip()
    return _NUMBER.sub("#", head.partition("<")[0].partition("(")[0])


@lru_cache(maxsize=1 << 14)
def words(name: str) -> frozenset[str]:
    """Return the words of a name, in lower case."""
    return frozenset(word.lower() for word in _WORDS.findall(name[:_LONGEST]))


@lru_cache(maxsize=1 << 14)
def fused_words(name: str) -> tuple[str, ...]:
    """Return the words that a fused operator's or kernel's name lists; empty where it is no such name.

    Code generators join the operators' names by underscores, as the names of hand-written ones do
    (``linear_relu``); which words make one operator is only known beside the other run.
    """
    plain = name.rpartition("::")[2].partition(".")[0].partition("<")[0].partition("(")[0]
    plain = (generated_name(plain) or plain)[:_LONGEST]
    listed = _FUSED.search(plain)
    text = listed[1] if listed else plain
    parts = tuple(part for part in text.split("_") if part)
    return parts if listed or 1 < len(parts) < 12 else ()


def split_words(parts: tuple[str, ...], known: frozenset[str]) -> tuple[list[str], int]:
    """Return the operators that words make, longest names first, and how many of the words are in them."""
    out: list[str] = []
    used = at = 0
    while at < len(parts):
        for stop in range(min(len(parts), at + 6), at, -1):
            name = base_name("_".join(parts[at:stop]))
            name = SHORT_WORDS.get(name, name)
            if name in known or name == "activation":
                out.append(name)
                used += stop - at
                at = stop
                break
        else:
            at += 1
    return out, used


class Vocabulary:
    """Numbers of labels, the same in both runs."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.exact: list[str] = []
        self._codes: dict[tuple[str, str], int] = {}
        self._hashes: list[int] = []
        self._loose: list[int] = []
        self._loose_codes: dict[tuple[str, str], int] = {}
        self.loose: list[str] = []

    def code(self, kind: str, name: str) -> int:
        """Return the number of a name's exact label."""
        if kind == "operator" and _RANGES.match(name):
            kind = "annotation"  # ranges of the compiler's parts
        key = (kind, exact_label(kind, name))
        found = self._codes.get(key)
        if found is None:
            found = self._codes[key] = len(self.exact)
            self.kinds.append(kind)
            self.exact.append(key[1])
            told = kind if kind in _PLACES else f"{kind}\0{key[1]}"
            self._hashes.append(
                int.from_bytes(blake2b(told.encode(errors="surrogatepass"), digest_size=8).digest())
            )
            loose = ("work" if kind in WORK else kind, loose_label(*key))
            number = self._loose_codes.setdefault(loose, len(self.loose))
            if number == len(self.loose):
                self.loose.append(loose[1])
            self._loose.append(number)
        return found

    def loose_of(self, codes: Ints) -> Ints:
        """Return the numbers of the loose labels of exact ones."""
        return np.array(self._loose, np.int64)[codes]

    def hashes(self, codes: Ints) -> NDArray[np.uint64]:
        """Return hashes of exact labels, the same in whatever order they came; threads have one in common."""
        return np.array(self._hashes, np.uint64)[codes]

    def metadata_only(self) -> NDArray[np.bool_]:
        """Say for each exact label whether it is of an operator that computes nothing."""
        return np.array(
            [
                kind == "operator" and self.loose[loose] in METADATA_ONLY
                for kind, loose in zip(self.kinds, self._loose, strict=True)
            ],
            bool,
        )
