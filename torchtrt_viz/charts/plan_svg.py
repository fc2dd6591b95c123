"""An engine's graph as SVG of a fixed size: rows of nodes, lines for tensors, folded rows as one node.

``static/plan.js`` opens folds in a page, with the same measures and curves; nodes and edges carry what it
needs.
"""

from __future__ import annotations

from dataclasses import dataclass

from torchtrt_viz.charts.chart import Edge, Graph, Node
from torchtrt_viz.charts.palette import css_class
from torchtrt_viz.charts.written import escaped, number

__all__ = ["COLUMN", "HEIGHT", "ROW", "WIDTH", "draw_graph", "measures"]

WIDTH, HEIGHT = 224, 54
"""Of a node, px."""
COLUMN, ROW = 256, 104
"""From a node to the next beside it and below it, px."""
_MARGIN = 8
_STEM = 20
"""A line leaves its node downwards, beside the words of the tensor, px."""


@dataclass(frozen=True)
class _Fold:
    first: int
    last: int
    x: float


class _Places:
    """Where rows lie while some are folded."""

    def __init__(self, body: Graph) -> None:
        self.left = min((node.x for node in body.nodes), default=0.0)
        right = max((node.x for node in body.nodes), default=0.0)
        for edge in body.edges:
            for x in edge.via:
                self.left, right = min(self.left, x - 0.4), max(right, x + 0.4)
        self.width = round((right - self.left) * COLUMN + WIDTH + 2 * _MARGIN)
        self.folds = []
        for first, last in body.folds:
            inside = [node.x for node in body.nodes if first <= node.rank <= last]
            self.folds.append(_Fold(first, last, sum(inside) / len(inside) if inside else 0.0))
        self.fold_of: dict[int, _Fold] = {
            row: fold for fold in self.folds for row in range(fold.first, fold.last + 1)
        }
        self.top: list[int] = []
        y = _MARGIN
        rows = max((node.rank for node in body.nodes), default=-1) + 1
        for row in range(rows):
            fold = self.fold_of.get(row)
            if fold is not None and row > fold.first:
                self.top.append(self.top[-1])
                continue
            self.top.append(y)
            y += ROW
        self.height = max(y - ROW + HEIGHT + _STEM, HEIGHT) + _MARGIN

    def center(self, x: float) -> float:
        return (x - self.left) * COLUMN + WIDTH / 2 + _MARGIN

    def path(self, body: Graph, edge: Edge) -> str:
        """Return the curve of an edge, empty where both ends are in one fold."""
        source, target = body.nodes[edge.source], body.nodes[edge.target]
        from_fold, to_fold = self.fold_of.get(source.rank), self.fold_of.get(target.rank)
        if from_fold is not None and from_fold is to_fold:
            return ""
        begin = self.center(from_fold.x if from_fold else source.x)
        end = self.center(to_fold.x if to_fold else target.x)
        y = self.top[source.rank] + HEIGHT
        if edge.back:
            side = max(begin, end) + WIDTH / 2 + 10
            return (
                f"M{begin:.0f} {y}C{side:.0f} {y + 30} {side:.0f} {self.top[target.rank] - 30} {end:.0f} "
                f"{self.top[target.rank]}"
            )
        out = [f"M{begin:.0f} {y}"]
        at = begin
        for step, x in enumerate(edge.via):
            row = source.rank + 1 + step
            fold = self.fold_of.get(row)
            if fold is not None and (fold in (from_fold, to_fold) or row > fold.first):
                continue
            to = self.center(x)
            out.append(_curve(at, y, to, self.top[row]) + f"V{self.top[row] + HEIGHT}")
            at, y = to, self.top[row] + HEIGHT
        out.append(_curve(at, y, end, self.top[target.rank]))
        return "".join(out)


def _curve(x0: float, y0: float, x1: float, y1: float) -> str:
    y0 += _STEM
    middle = (y0 + y1) / 2
    return f"V{y0}C{x0:.0f} {middle:.0f} {x1:.0f} {middle:.0f} {x1:.0f} {y1}"


def measures(body: Graph) -> str:
    """Return what ``static/plan.js`` draws by: the leftmost place, and pixels above."""
    return f"{_Places(body).left:g} {COLUMN} {ROW} {WIDTH} {HEIGHT} {_MARGIN} {_STEM}"


def draw_graph(body: Graph) -> tuple[str, int, int]:
    """Return the graph as SVG elements, and their width and height in pixels."""
    places = _Places(body)
    most = max((node.pct for node in body.nodes if node.pct is not None), default=0.0)
    out = []
    for edge in body.edges:
        path = places.path(body, edge)
        via = " ".join(number(round(x, 3)) for x in edge.via)
        back = ' data-b="1"' if edge.back else ""
        out.append(
            f'<path class="k{"" if path else " x"}" data-s="{edge.source}" data-t="{edge.target}" '
            f'data-v="{via}"{back} d="{path or "M0 0"}"><title>{escaped(edge.says)}</title></path>'
        )
    tensors: dict[int, list[Edge]] = {}
    for edge in body.edges:
        tensors.setdefault(edge.source, []).append(edge)
    for at, node in enumerate(body.nodes):
        out.append(_node(node, places, most, tensors.get(at, [])))
    out += [_fold(fold, body, places) for fold in places.folds]
    return "".join(out), places.width, places.height


def _node(node: Node, places: _Places, most: float, tensors: list[Edge]) -> str:
    hidden = " x" if node.rank in places.fold_of else ""
    x, y = places.center(node.x) - WIDTH / 2, places.top[node.rank]
    bar = ""
    if node.pct is not None and most > 0:
        bar = (
            f'<rect class="{css_class(node.color)}" y="{HEIGHT - 4}" width="{WIDTH * node.pct / most:.1f}" '
            'height="4"/>'
        )
    stripe = f'<rect class="{css_class(node.color)}" width="6" height="{HEIGHT}"/>' if node.layer else ""
    label = ""
    if tensors:
        names = list(dict.fromkeys(edge.about for edge in tensors))
        more = f" +{len(names) - 1}" if len(names) > 1 else ""
        whole = "\n".join(dict.fromkeys(edge.says for edge in tensors))
        label = (
            f'<text class="m c h" x="{WIDTH / 2:.0f}" y="{HEIGHT + 15}">{escaped(names[0] + more)}'
            f"<title>{escaped(whole)}</title></text>"
        )
    return (
        f'<g class="n{hidden}" data-r="{node.rank}" data-x="{node.x:g}" data-l="{escaped(node.name)}" '
        f'transform="translate({x:.0f} {y})"><title>{escaped(node.says)}</title>'
        f'<rect class="box" width="{WIDTH}" height="{HEIGHT}" rx="{4 if node.layer else 18}"/>'
        f"{stripe}{bar}"
        f'<text x="14" y="16">{escaped(node.label)}</text>'
        f'<text class="m" x="14" y="31">{escaped(node.kind)}</text>'
        f'<text class="m" x="14" y="45">{escaped(node.about)}</text>{label}</g>'
    )


def _fold(fold: _Fold, body: Graph, places: _Places) -> str:
    inside = [node for node in body.nodes if fold.first <= node.rank <= fold.last]
    layers = [node for node in inside if node.layer]
    timed = [node.pct for node in layers if node.pct is not None]
    share = f" · {sum(timed):.1f} %" if timed else ""
    words = f"{len(layers):,} layers{share}"
    begin, end = (layers[0].label, f"… {layers[-1].label}") if layers else ("", "")
    says = f"{words}: {', '.join(node.name for node in layers[:12])}{', …' if len(layers) > 12 else ''}"
    x, y = places.center(fold.x) - WIDTH / 2, places.top[fold.first]
    return (
        f'<g class="f" data-a="{fold.first}" data-z="{fold.last}" data-x="{fold.x:g}" '
        f'transform="translate({x:.0f} {y})"><title>{escaped(says)}</title>'
        f'<rect class="box" x="4" y="-4" width="{WIDTH - 8}" height="{HEIGHT}" rx="4"/>'
        f'<rect class="box" width="{WIDTH}" height="{HEIGHT}" rx="4"/>'
        f'<text x="14" y="16">{escaped(words)}</text>'
        f'<text class="m" x="14" y="32">{escaped(begin)}</text>'
        f'<text class="m" x="14" y="46">{escaped(end)}</text></g>'
    )
