"""From facts to one file that needs nothing else: no network, no other file, nothing that a name in the data could start."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

from mosaic.data import check_output, replacing
from mosaic.exceptions import InvalidInputError, MissingDependencyError
from mosaic.inspection.explanations import check_estimator
from mosaic.report._facts import MOST_POINTS, facts_of
from mosaic.report._subject import Subject, subject_of

#: Parts of the page's program, in their order.
SCRIPTS = ("data.js", "lists.js", "map.js", "charts.js", "selected.js", "hands.js", "page.js")
#: What could end a script element, or begin a comment in it, as JSON may write it.
HARMLESS = {ord("<"): "\\u003c"}


def report_html(
    model: Any,
    *,
    table: Any = None,
    names: Any = None,
    columns: Any = None,
    images: Any = None,
    groups: Any = None,
    title: str | None = None,
    command: str | None = None,
    certificate: bool = True,
    max_points: int = MOST_POINTS,
) -> str:
    """The report of a fit, as one page of HTML.

    Parameters
    ----------
    model : fitted MOSAIC or MOSAICSampler
    table : what ``mosaic.data.open_table`` gave: names, cells, pictures and groups come from there
    names, columns, images, groups : instead of a table, one entry for each row: what rows are called, a frame or a mapping from
        names of columns to values, pictures as arrays, labels
    title : of the page
    command : that makes it again
    certificate : whether to bound what the best k points would leave, which solves one more program
    max_points : points on the map. The ranked and those with the lowest counts are among them, the others are drawn

    Notes
    -----
    1. Beyond the chosen k the slider goes on with whoever adds most; below, it takes the first of the chosen. Picks of a fit
       that is asked for another k can be better, since they are exchanged.
    2. After a fit by passes the page is about the points in memory, and numbers of rows are scaled up from them.
    3. The page is the same, byte for byte, whenever and wherever the same fit is reported.

    Examples
    --------
    >>> from mosaic import MOSAIC, datasets
    >>> from mosaic.report import report_html
    >>> page = report_html(MOSAIC(20).fit(datasets.blobs_with_gross_outliers().X))
    >>> page.startswith("<!doctype html>"), "provably within" in page
    (True, True)
    """
    if check_estimator(model):
        raise InvalidInputError(
            "a report is about representatives; a MOSAICOutlierDetector has none. Fit MOSAIC, whose report has the outliers, too."
        )
    subject = (
        Subject.of_table(table)
        if table is not None
        else subject_of(model.selection_.material.n_rows, names, columns, images, groups)
    )
    facts = facts_of(model, subject, title=title, command=command, certificate=certificate, max_points=max_points)
    return page_of(facts)


def write_report(model: Any, path: str | os.PathLike[str], *, force: bool = False, **about: Any) -> Path:
    """Write the report of a fit to a file.

    Parameters
    ----------
    model : fitted MOSAIC or MOSAICSampler
    path : of the file. It appears when it is complete; an older one is replaced only with ``force``
    force : whether a file that exists is replaced
    **about : as for ``report_html``

    Returns
    -------
    Path of the file.
    """
    check_output(path, force)
    page = report_html(model, **about)
    with replacing(path, force=force) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return Path(path)


def page_of(facts: dict[str, Any]) -> str:
    """The page of these facts. Style and program are allowed by their hash, all else is forbidden."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise MissingDependencyError("A report needs Jinja2: pip install 'mosaic-select[report]'.") from error
    room = files("mosaic.report").joinpath("page")
    css = room.joinpath("page.css").read_text("utf-8")
    js = "\n".join(room.joinpath(name).read_text("utf-8") for name in SCRIPTS)
    allowed = f"script-src {_hash(js)}; style-src {_hash(css)}; img-src data:"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(room.joinpath("page.html.j2").read_text("utf-8"))
    data = json.dumps(facts, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(HARMLESS)
    page = template.render(facts=facts, title=facts["title"], css=css, js=js, facts_json=data, csp=policy)
    return page.encode("utf-8", "replace").decode()  # names of files need not be text


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
