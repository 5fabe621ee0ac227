"""The results pages, from the lines of the runs: the same lines give the same pages.

python -m experiments.paper.page
python -m experiments.paper.page --folder experiments/results --keep

Three pages: what the paper claims and what came out; behind it every reading, table and missing run; and, if our own comparison
has been run, how well we choose.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path

from experiments.items import DETECTION_RIVALS, OTHERS, OWN, PAPER, RUNS
from experiments.job import Job
from experiments.paper import classification, f1_table, faces, quality, robustness, running_time, saliency, structured
from experiments.paper._lines import Line, in_order, label, latest, tiers, why_not
from experiments.paper._markdown import ABSENT, escaped, number_range
from experiments.paper._markdown import table as markdown
from experiments.paper.claims import CLAIMS, PROVEN, Claim, Proven
from experiments.paper.rules import HERO, SELECTION_RIVALS, Found, Reading
from experiments.run import keep, read

OUT = Path(__file__).parents[2] / "docs" / "results.md"
#: Pages beside the first.
DETAILS, CHOOSING = "results-details.md", "how_well_we_choose.md"
TITLES = {
    "robustness": "Robustness of selection",
    "faces": "Faces",
    "classification": "Classification with representatives",
    "running_time": "Running time",
    "saliency": "Salient objects",
    "structured": "Structured outliers",
    "f1_table": "The F1 table",
}
KINDS = ("reproduced", "in some readings", "level", "not reproduced", "cannot be told", "no runs")
#: Where the lines of all runs are kept.
KEPT = Path(__file__).parent
INTRODUCTION = """\
# Results

What the paper claims, and what came out when we ran it. `algorithm="paper"` is its algorithm as written, beside the best of the
methods it compares with; MOSAIC() is this library with its defaults. What the text leaves open is tried as a range of readings,
and a claim counts as reproduced if it holds in all that can tell. Two numbers are level where they differ, run by run, by no more
than the standard error of that (±, the largest of all readings), or where both are at most 0.005 from the best there is. A single
run has no standard error: it decides without one."""
FOOT = f"""\
The paper's words, readings and all tables are in the [details]({DETAILS}). `python -m experiments.paper.page` makes both pages
from the lines of all runs, which are kept beside it; `make experiments-all` makes the runs again, `make experiments` a few.

## How well we choose

Our own comparison, on more sets than the paper has, with {{contestants}}: [how well we choose]({CHOOSING})."""
RULES = f"""\
- A claim is about {HERO}, which is `algorithm="paper"`, against what the paper compares with: {", ".join(SELECTION_RIVALS)} for
  selection, {", ".join(DETECTION_RIVALS)} for detection. M-kmeans, FDR and RML are surrogates: definitions of them could not be
  found. Where only a surrogate is as good, this says nothing about the original, and the reading stays open.
- A method with settings gets the best of them on other data: another draw of a manifold, another part of a split, another
  photograph. For the share of outliers among the picks the best are those with the smallest share, else those with the best
  accuracy, AUC, or explained share. MOSAIC() has no settings. For running times everybody keeps the defaults.
- Numbers are means over runs ± their standard deviation, all from `experiments/judge.py`. Bold is the best mean of a column."""
TIERS = """\
- **ours**: MOSAIC is `MOSAIC()`, the defaults of this library; MOSAIC (paper) is the paper's algorithm as written,
  `algorithm="paper"`; MOSAIC (paper, scalable) its variant for many points, `algorithm=Paper(sketch=Sketch(…))`.
- **paper**: a baseline of the paper, or of the work that it builds on, whose definition is known.
- **surrogate**: a stand-in for a baseline whose definition could not be found.
- **peer**: a method that users use, and that the paper does not compare with."""


def summary(lines: Sequence[Line]) -> str:
    """The first page: one line a claim."""
    found = {claim: claim.decide(lines) for claim in CLAIMS}
    counts = Counter(_kind(f.status) for f in found.values())
    words = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
    runs = ", ".join(f"{item} {_runs(lines, item)}" for item in PAPER if latest(lines, item))
    words = f"Of {len(found)} claims that runs can decide: {words}. Runs of a case: {runs}. The text has 50."
    rows = [_row(number, claim, found[claim]) for number, claim in enumerate(CLAIMS, 1)]
    header = ["", "claim", "rule", "verdict", 'algorithm="paper" (best other)', "MOSAIC()"]
    reasons = _reasons(found)
    timed = latest(lines, running_time.ITEM)
    proven = markdown(["claim", "the paper's words", "verdict", ""], [_proven_row(each) for each in PROVEN], left=4)
    parts = [
        INTRODUCTION,
        words,
        markdown(header, rows, left=6),
        *([running_time.machine(timed)] if timed else []),
        "Claims that no run decides:",
        proven,
        *(["**Where MOSAIC() is behind**, and why:", reasons] if reasons else []),
    ]
    return "\n\n".join(parts)


def _runs(lines: Sequence[Line], item: str) -> str:
    """Runs of a case, and of whom there are fewer than of the others."""
    seeds = len({line["seed"] for line in lines if line["item"] == item})
    fewer = [f"{name} {runs}" for name, runs in RUNS.get(item, {}).items() if name != OTHERS and runs < seeds]
    return f"{seeds} ({', '.join(fewer)})" if fewer else str(seeds)


def _kind(status: str) -> str:
    return "in some readings" if status.startswith(("in ", "agrees if")) else status.partition(",")[0]


def _row(number: int, claim: Claim, found: Found) -> list[str]:
    link = f"[{number}]({DETAILS}#claim-{number})"
    missing = sum(reading.outcome == "absent" for reading in found.readings)
    verdict = f"**{found.status}**" + (f"; readings without runs: {missing}" if missing else "")
    return [link, *map(escaped, (claim.text, claim.rule, verdict, figure_of(found), default_of(found)))]


def _proven_row(claim: Proven) -> list[str]:
    section, words = next(iter(claim.sentences.items()))
    return [*map(escaped, (claim.text, f"“{words}” ({section})", f"**{claim.status}**")), claim.words]


def figure_of(found: Found) -> str:
    """Numbers of the paper's method over the readings, and of the best other."""
    known = [reading for reading in found.readings if reading.outcome != "absent"]
    if found.words or not known:
        return found.words or ABSENT
    mine, theirs = (number_range([getattr(r, side) for r in known], found.digits) for side in ("paper", "other"))
    names = list(dict.fromkeys(reading.whose for reading in known if reading.whose))
    text = f"{mine} ({theirs}, {' or '.join(names)})" if names else mine
    errors = [reading.error for reading in known if reading.error]
    text += f" ± {max(errors):.{found.digits}f}" if errors else ""
    return f"{text}; {found.note}" if found.note else text


def default_of(found: Found) -> str:
    """The same of MOSAIC(), where it takes part."""
    return number_range([reading.default for reading in found.readings], found.digits)


def _reasons(found: Mapping[Claim, Found]) -> str:
    """One line for each reason, with the claims that it is about."""
    grouped: dict[str, list[str]] = {}
    for number, (claim, result) in enumerate(found.items(), 1):
        if result.behind:
            grouped.setdefault(claim.why or "the reason is not known", []).append(str(number))
    return "\n".join(f"- {', '.join(numbers)}: {why}." for why, numbers in grouped.items())


def details(lines: Sequence[Line], jobs: Iterable[Job], figures: Path | None = None) -> str:
    """The second page: every claim with its readings, then figures and tables of each item, and what is missing.

    Parameters
    ----------
    lines : of the runs
    jobs : the runs that should be there; what is missing of them is listed
    figures : folder for the figures, which the page names relative to its parent; None for a page without
    """
    sections = [
        "# Results in detail",
        "Each claim of [the results](results.md) with its sentences, its readings and its rule; then all tables.",
        _header(lines),
        f"## Who takes part\n\n{TIERS}",
        f"## Rules for all claims\n\n{RULES}",
        "## Claims",
        *(_claim(number, claim, claim.decide(lines)) for number, claim in enumerate(CLAIMS, 1)),
        *(f"## {title}\n\n{_item(item, lines, figures)}" for item, title in TITLES.items()),
        f"## Missing runs\n\n{missing(lines, jobs)}",
        f"## Runs without an answer\n\n{without_answer(lines)}",
    ]
    return "\n\n".join(sections) + "\n"


def _claim(number: int, claim: Claim, found: Found) -> str:
    quotes = "\n".join(f"- “{words}” ({section})" for section, words in claim.sentences.items())
    rows = [_reading_row(reading, found.digits) for reading in found.readings]
    shown = markdown(["reading", "", 'algorithm="paper"', "the one to beat", "± (difference)", "MOSAIC()", ""], rows, left=2)
    rule = claim.rule[0].upper() + claim.rule[1:]
    text = f"**Reading.** {claim.reading}\n\n**Rule.** {rule}.\n\n**{found.status[0].upper()}{found.status[1:]}**"
    return f"### Claim {number}\n\n**{claim.text}**\n\n{quotes}\n\n{text}\n\n{shown}"


def _reading_row(reading: Reading, digits: int) -> list[str]:
    values = (reading.paper, reading.other, reading.error, reading.default)
    paper, other, error, default = (ABSENT if value is None else f"{value:.{digits}f}" for value in values)
    if reading.whose:
        other += f" ({reading.whose})"
    return [escaped(reading.name or "—"), reading.outcome, paper, other, error, default, escaped(reading.words)]


def missing(lines: Sequence[Line], jobs: Iterable[Job]) -> str:
    """The runs that are not there, for each item and set; and the sets that were not at hand."""
    done = {tuple(line[name] for name in Job.__dataclass_fields__) for line in lines}
    wanted: dict[tuple[str, str], list[Job]] = {}
    for job in dict.fromkeys(jobs):
        wanted.setdefault((job.item, job.dataset), []).append(job)
    rows = []
    for (item, dataset), group in wanted.items():
        absent = [job for job in group if astuple(job) not in done]
        if absent:
            methods = list(dict.fromkeys(job.method for job in absent))
            everyone = len(methods) == len({job.method for job in group})
            names = "all" if everyone else ", ".join(methods)
            rows.append([item, dataset, f"{len(absent)} of {len(group)}", names])
    sets = sorted({line["dataset"] for line in lines if "missing" in line})
    words = [markdown(["item", "set", "runs missing", "methods"], rows, left=4) if rows else "No run is missing."]
    if sets:
        words.append(f"Sets that were not at hand: {', '.join(sets)}.")
    return "\n\n".join(words)


def without_answer(lines: Sequence[Line]) -> str:
    """Reasons that methods gave for not answering, and how many runs of each."""
    tier = tiers(lines)
    counts = Counter(
        (line["item"], label(line["method"], tier[line["method"]]), line["dataset"], why_not(line))
        for line in lines
        if "cannot" in line
    )
    rows = [[*(escaped(text) for text in key), str(counts[key])] for key in sorted(counts, key=in_order)]
    return markdown(["item", "method", "set", "reason", "runs"], rows, left=4) if rows else "Every run has an answer."


def _header(lines: Sequence[Line]) -> str:
    """Versions, and for each item how many runs there are."""
    versions: dict[str, set[str]] = {}
    for line in lines:
        for package, version in line.get("versions", {}).items():
            versions.setdefault(package, set()).add(version)
    named = ", ".join(f"{package} {' / '.join(sorted(versions[package]))}" for package in sorted(versions))
    rows = []
    for item in PAPER:
        mine = [line for line in lines if line["item"] == item]
        answered = sum("verdict" in line for line in mine)
        rows.append([item, str(len({line["dataset"] for line in mine})), _runs(lines, item), str(len(mine)), str(answered)])
    return f"Versions: {named or 'no runs'}.\n\n" + markdown(
        ["item", "sets", "runs of a case", "runs in all", "with an answer"], rows
    )


def _item(item: str, lines: Sequence[Line], figures: Path | None) -> str:
    """Figure and tables of one item."""
    mine = latest(lines, item)
    if not mine:
        return "*Missing: no run of this item yet.*"
    parts = []
    if item in FIGURES and figures is not None and any("verdict" in line for line in mine):
        path = FIGURES[item](mine, figures / f"{item}.png")
        if path is not None:
            parts.append(f"![{TITLES[item]}]({figures.name}/{path.name})")
    return "\n\n".join([*parts, *BODIES[item](lines)])


BODIES: Mapping[str, Callable[[Sequence[Line]], list[str]]] = {
    "faces": faces.parts,
    "robustness": robustness.parts,
    "classification": classification.parts,
    "running_time": running_time.parts,
    "saliency": saliency.parts,
    "structured": structured.parts,
    "f1_table": f1_table.parts,
}
FIGURES: Mapping[str, Callable[[Sequence[Line], Path], Path | None]] = {
    "faces": faces.figure,
    "robustness": robustness.figure,
    "running_time": running_time.figure,
    "saliency": saliency.figure,
    "structured": structured.figure,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    from experiments.items import SELECTORS, jobs_of
    from experiments.methods import all_detectors

    parser = argparse.ArgumentParser(description="Write the results pages from the lines of the runs.")
    parser.add_argument("--folder", type=Path, default=KEPT, help="where the runs wrote their lines; without it, the kept lines")
    parser.add_argument("--keep", action="store_true", help="keep the lines of the folder")
    parser.add_argument("--out", type=Path, default=OUT, help="the first page; the others and figures/ go beside it")
    parser.add_argument("--slice", choices=["small", "all"], default="all", help="which runs should be there")
    options = parser.parse_args(arguments)
    lines, folder = latest(read(options.folder)), options.out.parent
    folder.mkdir(parents=True, exist_ok=True)
    if options.keep:
        keep(lines, KEPT)
    contestants = f"{len(SELECTORS)} selectors and {len(all_detectors())} detectors"
    paper = [line for line in lines if line["item"] in PAPER]
    if paper:
        options.out.write_text(f"{summary(paper)}\n\n{FOOT.format(contestants=contestants)}\n")
        jobs = [job for item in PAPER for job in jobs_of(item, small=options.slice == "small")]
        (folder / DETAILS).write_text(details(paper, jobs, folder / "figures"))
    if any(line["item"] in OWN for line in lines):
        (folder / CHOOSING).write_text(f"# How well we choose\n\n{quality.section(lines)}\n")


if __name__ == "__main__":
    main()
