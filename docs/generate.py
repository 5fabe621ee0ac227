"""Write what the site shows and nobody writes by hand, into docs/_generated. ``make docs`` runs it before Sphinx.

- the gallery: every example is run; its code, what it prints, a picture and its report become a page;
- the demo's report, for the first page;
- llms.txt;
- the benchmark results, CHANGELOG.md and CONTRIBUTING.md, with links that lead to pages of the site.

An example that has not changed since its page was made is not run again.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import runpy
import shutil
import sys
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
OUT = DOCS / "_generated"
#: Files that are copied to the site as they are.
SITE = OUT / "site"
EXAMPLES = ("cold_start", "clean_and_select", "documents", "faces", "cells", "salient_patches")
sys.path[:0] = [str(DOCS), str(ROOT / "examples")]


def main() -> None:
    """Write all generated pages."""
    os.environ["MOSAIC_DATA"] = str(OUT / "no-data")  # data that everybody has, so that every build is the same
    for folder in ("gallery", "benchmarks", "site"):
        (OUT / folder).mkdir(parents=True, exist_ok=True)
    for name in EXAMPLES:
        if _changed(OUT / "gallery" / f"{name}.md", ROOT / "examples" / f"{name}.py"):
            write_example(name)
    write_spark()
    write_gallery()
    write_benchmarks()
    for name in ("CHANGELOG", "CONTRIBUTING"):
        text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
        (OUT / f"{name}.md").write_text(_site_text(text, PurePosixPath(f"{name}.md")), encoding="utf-8")
    write_llms()
    if _changed(SITE / "demo.html", Path(__file__)):
        write_demo()


def write_example(name: str) -> None:
    """Run an example, and write its page, its picture and its report."""
    import matplotlib

    matplotlib.use("Agg")
    path = ROOT / "examples" / f"{name}.py"
    printed = io.StringIO()
    given, sys.argv = sys.argv, [str(path), "--out", "out"]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        found = runpy.run_path(str(path), run_name="__main__")
        shutil.copy("out/report.html", SITE / f"{name}.html")
    sys.argv = given
    draw(name, found).savefig(OUT / "gallery" / f"gallery_{name}.png", dpi=110, bbox_inches="tight", facecolor="white")
    matplotlib.pyplot.close("all")
    title, about = _title_and_text(path)
    page = [
        f"# {title}",
        about,
        f"![What the example finds](gallery_{name}.png)",
        f'<p><a href="../../{name}.html">Open the report that it writes</a></p>',
        "## What it prints",
        f"```text\n{printed.getvalue().strip()}\n```",
        "## The code",
        f"From `examples/{name}.py`:",
        f"```python\n{_code(path)}\n```",
    ]
    (OUT / "gallery" / f"{name}.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")


def pictures(images: Any) -> Any:
    """Pictures in a grid."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(-(-len(images) // 10), 10, figsize=(9, -(-len(images) // 10)), squeeze=False)
    for ax in axes.ravel():
        ax.axis("off")
    for ax, image in zip(axes.ravel(), images, strict=False):
        ax.imshow(image, cmap="gray")
    return figure


def draw(name: str, found: dict[str, Any]) -> Any:
    """A picture of what an example has found, from its variables."""
    from matplotlib import pyplot

    from mosaic import show

    if name == "cold_start":
        return pictures(16 - found["pool"].reshape(-1, 8, 8)[found["model"].representative_indices_])
    if name == "faces":
        images, twelve = found["images"], found["model"].rethreshold(n_representatives=12)
        return pictures(images.max() - images[twelve.representative_indices_])
    if name == "salient_patches":
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3))
        left.imshow(found["photograph"] / 255)
        left.set_title("The photograph", loc="left")
        right.imshow(found["salience"].reshape(found["rows"], found["columns"]), cmap="magma")
        right.set_title("How much each patch stands out", loc="left")
        for ax in (left, right):
            ax.axis("off")
        return figure
    model = next(found[key] for key in ("fair", "clean", "model") if key in found)
    return show.plot_map(model).figure


def write_spark() -> None:
    """The page of the Spark example, which is shown and not run: it needs a cluster."""
    path = ROOT / "examples" / "spark.py"
    title, about = _title_and_text(path)
    page = [f"# {title}", about, "## The code", f"From `examples/spark.py`:\n\n```python\n{_code(path)}\n```"]
    (OUT / "gallery" / "spark.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")


def write_gallery() -> None:
    """The first page of the gallery: a picture and a sentence for each example."""
    cards = []
    for name in EXAMPLES:
        title, _ = _title_and_text(ROOT / "examples" / f"{name}.py")
        cards.append(
            f'<a class="card" href="{name}.html"><img src="../../_images/gallery_{name}.png" alt="">'
            f"<strong>{title.split(':')[0]}</strong><span>{title.split(':', 1)[-1].strip()}</span></a>"
        )
    pages = "\n".join([*EXAMPLES, "spark"])
    text = f"""# Examples

Programs to read from top to bottom and to run. Each prints what it finds and writes a report and a table of its picks. They use
data that comes with scikit-learn or that is made on the spot, and take a few seconds each.

<div class="gallery">
{chr(10).join(cards)}
</div>

[spark.py](spark.md) fits a Spark data frame.

```{{toctree}}
:hidden:

{pages}
```
"""
    (OUT / "gallery" / "index.md").write_text(text, encoding="utf-8")


def write_benchmarks() -> None:
    """The pages of measurements, as the benchmarks wrote them."""
    files = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
    for file in files:
        text = _site_text(file.read_text(encoding="utf-8"), PurePosixPath("benchmarks/results") / file.name)
        (OUT / "benchmarks" / file.name).write_text(text, encoding="utf-8")
    pages = "\n".join(file.stem for file in files)
    index = f"# Measurements\n\nWritten by `make bench`, one page for each question.\n\n```{{toctree}}\n{pages}\n```\n"
    (OUT / "benchmarks" / "index.md").write_text(index, encoding="utf-8")


def write_llms() -> None:
    """The list of pages for programs, with links to the pages of the site."""
    import make_llms

    text = _site_text(make_llms.text(), PurePosixPath("llms.txt"))
    (SITE / "llms.txt").write_text(re.sub(r"\]\(/([^)#]+)\.md", r"](\1.html", text), encoding="utf-8")


def write_demo() -> None:
    """The report of ``mosaic demo``."""
    from mosaic.cli import main as mosaic_command

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        mosaic_command(["demo", f"{folder}/demo", "--quiet"])
        shutil.copy(f"{folder}/demo/report.html", SITE / "demo.html")


def _site_text(text: str, page: PurePosixPath) -> str:
    from links import moved_links

    return moved_links(text, page)


def _changed(result: Path, *sources: Path) -> bool:
    newest = max(file.stat().st_mtime for file in [*sources, Path(__file__), *(ROOT / "src").rglob("*.py")])
    return not result.exists() or result.stat().st_mtime < newest


def _title_and_text(path: Path) -> tuple[str, str]:
    """The first line of a file's docstring without its full stop, and the rest, as Markdown."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or path.stem
    title, _, rest = text.replace("``", "`").partition("\n")
    title, _, more = title.partition(". ")
    return title.rstrip("."), f"{more}\n{rest}".strip()


def _code(path: Path) -> str:
    """The code of a file below its docstring."""
    text = path.read_text(encoding="utf-8")
    first = ast.parse(text).body[0]
    return "\n".join(text.splitlines()[first.end_lineno :]).strip()


if __name__ == "__main__":
    main()
