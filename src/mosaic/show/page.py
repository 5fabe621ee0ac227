"""From facts to one self-contained page. It loads nothing, and no text of the data can run as code."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zlib
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from mosaic.arrays.threads import one_thread
from mosaic.choosing import counted
from mosaic.choosing.explain import likeness
from mosaic.exceptions import InvalidInputError
from mosaic.facts import Facts, facts_of
from mosaic.facts.facts import (
    bound_text,
    coverage_text,
    headline,
    outliers_in_words,
    sentence,
    share_text,
)
from mosaic.rows import Rows, check_output, replacing
from mosaic.rows.frames import n_rows
from mosaic.rows.images import thumbnails
from mosaic.rows.names import RowNames
from mosaic.rows.roles import Request
from mosaic.rows.saved import SavedRows
from mosaic.rows.write import PAGES
from mosaic.show.page_facts import page_facts
from mosaic.text import library


@one_thread()
def report_html(
    model: Any,
    *,
    names: Sequence[object] | None = None,
    columns: object = None,
    images: Sequence[object] | None = None,
    groups: Sequence[object] | str | None = None,
    title: str | None = None,
    command: str | None = None,
    certificate: bool = True,
    facts: Facts | None = None,
) -> str:
    """The report of a fit as one page of HTML.

    Parameters
    ----------
    model : fitted MOSAIC, MOSAICSampler or MOSAICOutlierDetector
    names, images, groups : one entry for each row: names, pictures as arrays, labels, or the column that holds labels
    columns : the rows with the columns that the page shows: a data frame, a file, or whatever else ``MOSAIC.fit`` takes
    title : title of the page
    command : command line that writes the page again
    certificate : whether to prove how close the choice is to the best
    facts : of the fit and of the open file that its rows are in, which has names, cells, pictures and groups

    Notes
    -----
    1. The page works without a network and without a server. The same fit gives the same page, byte for byte.
    2. Limits of the size: a map of at most 20 000 points, 120 steps of the threshold, twelve columns and 300 outliers in lists.
       Where cells of all points on the map would be too many, their numbers have fewer digits, and then columns are left out.

    Examples
    --------
    >>> from mosaic import MOSAIC, datasets, show
    >>> page = show.report_html(MOSAIC(20).fit(datasets.blobs_with_gross_outliers().X))
    >>> page.startswith("<!doctype html>"), "20 representatives" in page
    (True, True)
    """
    facts = facts or facts_of(model)
    rows = facts.file
    if rows is None:
        rows = rows_beside(facts.n_rows, names, columns, images, groups)
        known = model.row_names_
        if not rows.has_names and known is not None and known.rows is None:
            rows = replace(rows, index=known)
    return page_of(page_facts(facts, rows, title, command, certificate))


def write_report(
    model: object, path: str | os.PathLike[str], *, force: bool = False, **about: Any
) -> Path:
    """Write the report of a fit to a file, and return its path.

    ``path`` appears when it is complete; ``force`` replaces an existing file. All else is as for ``report_html``.
    """
    check_output(path, force, PAGES)
    page = report_html(model, **about)
    with replacing(path, force=force) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return Path(path)


def rows_beside(
    n: int,
    names: Sequence[object] | None,
    columns: object,
    images: Sequence[Any] | None,
    groups: Sequence[object] | str | None,
) -> Rows:
    """Rows whose names, columns, pictures and groups were given beside a fit."""
    rows = Rows(Request(), SavedRows("", "", n)) if columns is None else Rows.of(columns)
    lengths = {"columns": rows.n} | {
        name: n_rows(values)
        for name, values in (("names", names), ("images", images), ("groups", groups))
        if values is not None and not isinstance(values, str)
    }
    for parameter, length in lengths.items():
        if length != n:
            fault = f"must have one entry for each of {n} rows; got {length}"
            raise InvalidInputError(
                fault,
                "Give one for each row of the fitted data, in their order.",
                parameter=parameter,
            )
    rows = rows.with_roles(groups, None)
    if names is not None:
        # NaN is no name.
        called = (
            str(row if name is None or name != name else name) for row, name in enumerate(names)
        )
        rows = replace(rows, index=RowNames(tuple(called), "names"))
    if images is not None:
        rows = replace(
            rows,
            pictures_of=lambda numbers, side: thumbnails(
                [images[row] for row in numbers.tolist()], side
            ),
        )
    return rows


def page_of(facts: dict[str, Any]) -> str:
    """The page of these facts. Its policy allows its own style and script by their hashes, and forbids everything else."""
    jinja2 = library("jinja2", "a report")
    folder = files("mosaic.show").joinpath("page_parts")
    css = folder.joinpath("page.css").read_text("utf-8")
    # In order.
    scripts = (
        "data",
        "marks",
        "arrange",
        "lists",
        "map",
        "charts",
        "columns",
        "selected",
        "search",
        "input",
        "page",
    )
    js = "\n".join(folder.joinpath(f"{name}.js").read_text("utf-8") for name in scripts)
    allowed = f"script-src {_hash(js)}; style-src {_hash(css)}; img-src data:"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "counted": counted,
        "share": share_text,
        "whole": lambda number: f"{round(number):,}",
        "alike": likeness,
    }
    template = environment.from_string(folder.joinpath("page.html.j2").read_text("utf-8"))
    facts = facts | {"texts": _texts(facts)}
    data = json.dumps(facts, allow_nan=False, separators=(",", ":")).encode()
    # What a reader marks is kept by the browser under this key, so that another fit has marks of its own.
    key = hashlib.sha256(data).hexdigest()[:16]
    deflated = base64.b64encode(zlib.compress(data)).decode()
    page: str = template.render(facts=facts, css=css, js=js, key=key, deflated=deflated, csp=policy)
    return page.encode("utf-8", "replace").decode()  # names of files need not be valid text


def _texts(facts: dict[str, Any]) -> dict[str, Any]:
    """Sentences of the page: the headline of the fit, templates for any k and threshold, and notes for print."""
    k = facts["k"]
    proof = facts["proof"]
    bounds = facts["bound"] or []
    templates = headline(facts["n"], facts["outliers"], picks=k > 0)
    coverage = (
        coverage_text(facts["coverage"][k - 1], bounds[k - 1] if bounds else None) if k else ""
    )
    found = outliers_in_words(facts["n_outliers"], facts["is_estimate"])

    def not_printed(shown: int) -> str:
        left_out = len(facts["columns"]) - min(facts["n_compared"], shown)
        return f"{counted(left_out, 'more column')} on the page itself." if left_out > 0 else ""

    return templates | {
        "sentence": sentence(templates, k, coverage, found),
        "found": found,
        "bounds": [bound_text(bound) for bound in bounds],
        "proof_elsewhere": f"For the chosen {'one' if k == 1 else f'{k:,}'}: {proof[0].lower()}{proof[1:]}",
        # A printed table has nine columns (the style sheet hides others), four of which are no cells; a card has three.
        "not_printed": {
            "picks": not_printed(9 - 4),
            "outliers": not_printed(9 - 4),
            "cards": not_printed(3),
        },
    }


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
