"""Draw which package imports which, from the code, into docs/figures/architecture.svg. ``make docs`` runs it.

The layers are those of the import contract in pyproject.toml. An arrow from A to B says that A imports B; where A also reaches
B through something that it imports, the arrow is left out, so that the picture shows the shape and not every line.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
SOURCE = DOCS.parent / "src" / "mosaic"
NAMES = ("interfaces", "data", "choosing", "program", "kernels", "basics")
COLOURS = ("#e8f0fb", "#e6f5f0", "#fdf3dd", "#fbe9e7", "#f0eafa", "#eeeeee")
WIDTH, MARGIN, BAND, GAP, BOX, TITLE = 1120, 16, 92, 26, 46, 130


def layers() -> list[list[str]]:
    """Names of packages and modules below ``mosaic``, from the highest layer to the lowest."""
    settings = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(c for c in settings["tool"]["importlinter"]["contracts"] if c["type"] == "layers")
    return [[name.strip() for name in layer.replace("|", ":").split(":")] for layer in contract["layers"]]


def size(name: str) -> tuple[int, int]:
    """Files and lines of a package or module."""
    path = SOURCE / name
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return len(files), sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def imports(names: set[str]) -> set[tuple[str, str]]:
    """Pairs (importer, imported) of packages; imports for type checkers only are left out."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        importer = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for node in _nodes(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            elif node.module == "mosaic":
                targets = [f"mosaic.{alias.name}" for alias in node.names]
            else:
                targets = [node.module or ""]
            for target in targets:
                parts = target.split(".")
                if parts[0] == "mosaic" and len(parts) > 1 and parts[1] in names and parts[1] != importer:
                    found.add((importer, parts[1]))
    return {(a, b) for a, b in found if a in names}


def _nodes(tree: ast.AST) -> list[ast.Import | ast.ImportFrom]:
    found: list[ast.Import | ast.ImportFrom] = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(node)
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            found += _nodes(node)
    return found


def reduced(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The edges that no longer path replaces."""
    following: dict[str, set[str]] = {}
    for a, b in edges:
        following.setdefault(a, set()).add(b)

    def reaches(start: str, goal: str, seen: set[str]) -> bool:
        if start == goal:
            return True
        seen.add(start)
        return any(reaches(step, goal, seen) for step in following.get(start, set()) - seen)

    return {
        (a, b) for a, b in edges if not any(reaches(step, b, {a}) for step in following[a] - {b}) or (b, a) in edges
    }


def picture() -> str:
    """The drawing as SVG: a band for each layer, a box for each package, an arrow for each import."""
    rows = layers()
    known = [[name for name in row if size_exists(name)] for row in rows]
    known = [row for row in known if row]
    edges = imports({name for row in known for name in row})
    shown = reduced(edges)
    height = 2 * MARGIN + len(known) * BAND + (len(known) - 1) * GAP
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif">',
        "<title>Packages of MOSAIC in six layers; arrows show imports and point down</title>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#5b6b7c"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    place: dict[str, tuple[float, float, float]] = {}
    boxes: list[str] = []
    order: list[str] = []
    for level, row in enumerate(known):
        top = MARGIN + level * (BAND + GAP)
        title = NAMES[level] if len(known) == len(NAMES) else f"layer {level + 1}"
        drawn.append(
            f'<rect x="{MARGIN}" y="{top}" width="{WIDTH - 2 * MARGIN}" height="{BAND}" rx="8" fill="{COLOURS[level % 6]}"/>'
        )
        drawn.append(
            f'<text x="{MARGIN + 12}" y="{top + BAND / 2 + 5}" font-size="15" font-weight="600" fill="#333">{title}</text>'
        )
        # Under those who import it, so that arrows are short.
        weight = {
            name: _mean([order.index(a) / len(order) for a, b in edges if b == name and a in order]) for name in row
        }
        row = sorted(row, key=lambda name: (weight[name], name))
        order += row
        room = (WIDTH - 2 * MARGIN - TITLE) / len(row)
        for i, name in enumerate(row):
            x, wide = MARGIN + TITLE + i * room + 5, room - 10
            y = top + (BAND - BOX) / 2
            place[name] = (x + wide / 2, y, wide)
            files, lines = size(name)
            small = f"{lines:,}" if files == 1 else f"{lines:,} in {files}"
            boxes.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{BOX}" rx="5" fill="#fff" stroke="#5b6b7c"/>'
                f'<text x="{x + wide / 2:.1f}" y="{y + 20:.1f}" font-size="{_font(name, wide)}" text-anchor="middle" '
                f'fill="#111">{name}</text>'
                f'<text x="{x + wide / 2:.1f}" y="{y + 36:.1f}" font-size="10.5" text-anchor="middle" fill="#555">{small}</text>'
            )
    for a, b in sorted(shown):
        (xa, ya, _), (xb, yb, _) = place[a], place[b]
        if ya == yb:  # beside one another: an arc above the boxes
            lift = min(22.0, 8 + abs(xa - xb) / 40)
            path = f"M{xa:.1f} {ya:.1f}C{xa:.1f} {ya - lift:.1f} {xb:.1f} {yb - lift:.1f} {xb:.1f} {yb - 1:.1f}"
        else:
            start = ya + BOX
            path = f"M{xa:.1f} {start:.1f}C{xa:.1f} {start + 34:.1f} {xb:.1f} {yb - 38:.1f} {xb:.1f} {yb - 1:.1f}"
        drawn.append(
            f'<path d="{path}" fill="none" stroke="#5b6b7c" stroke-opacity="0.7" stroke-width="1.2" marker-end="url(#head)"/>'
        )
    return "\n".join([*drawn, *boxes, "</svg>"]) + "\n"


def size_exists(name: str) -> bool:
    """Whether the contract's name is in the source today; __main__ is not worth a box."""
    return name != "__main__" and ((SOURCE / name).is_dir() or (SOURCE / name).with_suffix(".py").exists())


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.5


def _font(name: str, wide: float) -> float:
    return round(min(14.0, 1.6 * wide / len(name)), 1)


if __name__ == "__main__":
    out = DOCS / "figures" / "architecture.svg"
    out.write_text(picture(), encoding="utf-8")
