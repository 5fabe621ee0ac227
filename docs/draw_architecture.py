"""Draw which package imports which, from the code, into docs/figures/architecture.svg. ``make docs`` runs it.

The bands are the layers of the import contract in pyproject.toml. An arrow from A to B says that A imports B; where A also
reaches B through something that it imports, the arrow is left out.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from statistics import fmean

DOCS = Path(__file__).parent
SOURCE = DOCS.parent / "src" / "mosaic"
WIDTH, MARGIN, BAND, GAP, BOX = 1120, 16, 78, 26, 46


def layers() -> list[list[str]]:
    """Names of packages and modules below ``mosaic``, from the highest layer to the lowest; __main__ is not worth a box."""
    settings = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(c for c in settings["tool"]["importlinter"]["contracts"] if c["type"] == "layers")
    rows = [[name.strip() for name in layer.replace("|", ":").split(":")] for layer in contract["layers"]]
    return [[name for name in row if name != "__main__"] for row in rows]


def size(name: str) -> str:
    """Lines of a module, lines and files of a package."""
    path = SOURCE / name
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    return f"{lines:,}" if len(files) == 1 else f"{lines:,} in {len(files)}"


def imports(names: set[str]) -> set[tuple[str, str]]:
    """Pairs (importer, imported) of packages; imports for type checkers only are left out."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        importer = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for target in _targets(ast.parse(path.read_text(encoding="utf-8"))):
            parts = target.split(".")
            if parts[0] == "mosaic" and len(parts) > 1 and parts[1] != importer:
                found.add((importer, parts[1]))
    return {(a, b) for a, b in found if {a, b} <= names}


def _targets(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            found += _targets(node)
    return found


def reduced(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Without the edges that a longer path replaces; one by one, so that packages that import one another keep theirs."""
    kept = set(edges)
    for a, b in sorted(edges):
        seen, new = set(), {a}
        while new:
            seen |= new
            new = {y for x, y in kept - {(a, b)} if x in new} - seen
        if b in seen:
            kept.remove((a, b))
    return kept


def picture() -> str:
    """The drawing as SVG: a band for each layer, a box for each package, an arrow for each import."""
    rows = layers()
    edges = imports({name for row in rows for name in row})
    height = 2 * MARGIN + len(rows) * BAND + (len(rows) - 1) * GAP
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif">',
        "<title>Packages of MOSAIC in layers; arrows show imports and point down</title>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#5b6b7c"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    place: dict[str, tuple[float, float]] = {}
    boxes = []
    for level, row in enumerate(rows):
        top = MARGIN + level * (BAND + GAP)
        drawn.append(f'<rect x="{MARGIN}" y="{top}" width="{WIDTH - 2 * MARGIN}" height="{BAND}" rx="8" fill="#eef2f6"/>')
        # Under those who import it, so that arrows are short.
        above = {name: [place[a][0] for a, b in edges if b == name and a in place] for name in row}
        row = sorted(row, key=lambda name: (fmean(above[name] or [WIDTH / 2]), name))
        room = (WIDTH - 2 * MARGIN) / len(row)
        wide, y = min(room - 10, 260), top + (BAND - BOX) / 2
        for i, name in enumerate(row):
            x = MARGIN + (i + 0.5) * room
            place[name] = (x, y)
            boxes.append(
                f'<rect x="{x - wide / 2:.1f}" y="{y}" width="{wide:.1f}" height="{BOX}" rx="5" fill="#fff" stroke="#5b6b7c"/>'
                f'<text x="{x:.1f}" y="{y + 20}" font-size="14" text-anchor="middle" fill="#111">{name}</text>'
                f'<text x="{x:.1f}" y="{y + 36}" font-size="10.5" text-anchor="middle" fill="#555">{size(name)}</text>'
            )
    for a, b in sorted(reduced(edges)):
        (xa, ya), (xb, yb) = place[a], place[b]
        if ya == yb:  # beside one another: an arc above the boxes
            path = f"M{xa:.1f} {ya}C{xa:.1f} {ya - 20} {xb:.1f} {yb - 20} {xb:.1f} {yb - 1}"
        else:
            path = f"M{xa:.1f} {ya + BOX}C{xa:.1f} {ya + BOX + 34} {xb:.1f} {yb - 38} {xb:.1f} {yb - 1}"
        drawn.append(f'<path d="{path}" fill="none" stroke="#5b6b7c" stroke-width="1.2" marker-end="url(#head)"/>')
    return "\n".join([*drawn, *boxes, "</svg>"]) + "\n"


if __name__ == "__main__":
    (DOCS / "figures" / "architecture.svg").write_text(picture(), encoding="utf-8")
