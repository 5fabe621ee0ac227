"""From facts to one self-contained page. It loads nothing, and no text of the data can run as code."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zlib
from importlib.resources import files
from pathlib import Path
from typing import Any

from mosaic.arrays.threads import one_thread
from mosaic.choosing import counted
from mosaic.choosing.explain import likeness
from mosaic.exceptions import MissingDependencyError
from mosaic.facts import Facts, facts_of
from mosaic.facts.facts import excess_text, headline, sentence, share_text
from mosaic.rows import check_output, replacing
from mosaic.show.page_columns import map_columns
from mosaic.show.page_facts import GivenRows, page_facts


@one_thread()
def report_html(
    model: Any,
    *,
    names: Any = None,
    columns: Any = None,
    images: Any = None,
    groups: Any = None,
    title: str | None = None,
    command: str | None = None,
    certificate: bool = True,
    facts: Facts | None = None,
) -> str:
    """The report of a fit as one page of HTML.

    Parameters
    ----------
    model : fitted MOSAIC, MOSAICSampler or MOSAICOutlierDetector
    names, columns, images, groups : one entry for each row: names, a frame or a mapping from column names to values, pictures as
        arrays, labels
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
    >>> page.startswith("<!doctype html>"), "provably within" in page
    (True, True)
    """
    facts = facts or facts_of(model)
    rows_of = facts.file
    if rows_of is None:
        known = model.row_names_
        names = known.names if names is None and known is not None and known.rows is None else names
        rows_of = GivenRows(facts.n_rows, names, columns, images, groups)
    page = page_facts(facts, rows_of, title, command, certificate)
    return page_of(page | {"map_columns": map_columns(rows_of, facts.row_of_point[facts.shown], page["columns"], page)})


def write_report(model: Any, path: str | os.PathLike[str], *, force: bool = False, **about: Any) -> Path:
    """Write the report of a fit to a file, and return its path.

    ``path`` appears when it is complete; ``force`` replaces an existing file. All else is as for ``report_html``.
    """
    check_output(path, force)
    page = report_html(model, **about)
    with replacing(path, force=force) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return Path(path)


def page_of(facts: dict[str, Any]) -> str:
    """The page of these facts. Its policy allows its own style and script by their hashes, and forbids everything else."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        remedy = "Use: pip install 'mosaic-select[report]'"
        raise MissingDependencyError("a report needs Jinja2, which is not installed", remedy) from error
    folder = files("mosaic.show").joinpath("page_parts")
    css = folder.joinpath("page.css").read_text("utf-8")
    scripts = ("data", "marks", "lists", "map", "charts", "columns", "selected", "search", "input", "page")  # in order
    js = "\n".join(folder.joinpath(f"{name}.js").read_text("utf-8") for name in scripts)
    allowed = f"script-src {_hash(js)}; style-src {_hash(css)}; img-src data:"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
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
    key, deflated = hashlib.sha256(data).hexdigest()[:16], base64.b64encode(zlib.compress(data)).decode()
    page = template.render(facts=facts, css=css, js=js, key=key, deflated=deflated, csp=policy)
    return page.encode("utf-8", "replace").decode()  # names of files need not be valid text


def _texts(facts: dict[str, Any]) -> dict[str, Any]:
    """Sentences of the page: the headline of the fit, templates for any k and threshold, and notes for print."""
    k, proof, n_columns = facts["k"], facts["certificate"], len(facts["columns"])
    templates = headline(facts["n"], facts["outliers"], scaled=facts["scaled"], picks=k > 0)
    excesses = [excess_text(excess) for excess in proof["excesses"] or [None] * len(facts["ranking"])]
    excesses[k - 1 : k] = [excess_text(proof["excess"])] * (k > 0)
    number = "one" if k == 1 else f"{k:,}"

    def not_printed(shown: int) -> str:
        left_out = n_columns - min(facts["n_compared"], shown)
        return f"{counted(left_out, 'more column')} on the page itself." if left_out > 0 else ""

    return templates | {
        "sentence": sentence(templates, k, facts["coverage"][k - 1] if k else 0.0, facts["n_outliers"], proof["excess"]),
        "excesses": excesses,
        "proven_elsewhere": "" if not k or excesses[k - 1] is None else f"; the proof is for {number}",
        "certificate_elsewhere": f"For the chosen {number}: {proof['sentence'][0].lower()}{proof['sentence'][1:]}",
        # A printed table has nine columns (the style sheet hides others), four or three of which are no cells; a card has three.
        "not_printed": {"picks": not_printed(9 - 4), "outliers": not_printed(9 - 3), "cards": not_printed(3)},
    }


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
