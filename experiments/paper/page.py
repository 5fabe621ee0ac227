"""The results page, from the lines of the runs: the same lines give the same page.

python -m experiments.paper.page
python -m experiments.paper.page --folder experiments/results --out docs/results.md
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path

from experiments.job import Job
from experiments.paper import (
    classification,
    f1_table,
    faces,
    losses,
    quality,
    robustness,
    running_time,
    saliency,
    scalable,
    structured,
    verdicts,
)
from experiments.paper._lines import MEASURES, Line, in_order, label, latest, tiers, why_not
from experiments.paper._markdown import escaped
from experiments.paper._markdown import table as markdown
from experiments.run import RESULTS, read

OUT = Path(__file__).parents[2] / "docs" / "results.md"
#: A large mixed table, measured by benchmarks/mixed.py; taken over if it is there.
MIXED = OUT.parents[1] / "benchmarks" / "results" / "mixed.md"
#: Why the losses are what they are, written by hand; taken over as it is if it is there.
DIAGNOSIS = Path(__file__).parent / "diagnosis.md"
TITLES = {
    "faces": "Faces",
    "robustness": "Robustness of selection",
    "classification": "Classification with representatives",
    "running_time": "Running time",
    "saliency": "Salient objects",
    "structured": "Structured outliers",
    "f1_table": "The F1 table",
}
QUALITY = "How well we choose"
NO_LINES = "*Missing: no run of this item yet.*"
INTRODUCTION = """\
# Results

Every experiment of the paper that has been run so far, and every contestant; after them our own comparison, on more sets, with
[how well we choose](#how-well-we-choose). This page is made of the lines of the runs by

```
make experiments-all                    # or, a small slice in minutes: make experiments
python -m experiments.run --item clean  # our own comparison, by name; also spoiled, separable, adbench, unspoilt, ablation
python -m experiments.paper.page
```

Numbers are means over seeds ± the standard deviation over seeds (n − 1); without ± there is one seed. All of them come from
`experiments/judge.py`, for all methods alike. Bold is the best mean of a column, of those that have all seeds.

A method with a grid of settings gets the best of them on a validation case; MOSAIC() has none, and for running times everybody
keeps the defaults. Manifolds are drawn anew for validation, and classification has a validation part of its own in each
split. For faces and for Frey faces with natural images, validation is another draw from the same file, so that some pictures
are in both: that favours methods with a grid."""
TIERS = """\
## Who takes part

- **ours**: MOSAIC is `MOSAIC()`, the defaults of this library; MOSAIC (paper) is the paper's algorithm as written, with
  `mode="paper"`. They are separate contestants. MOSAIC (paper, scalable) is its variant for many points, `strategy="sketch"`; it
  is compared with MOSAIC (paper), in tables of its own, and has no rank.
- **paper**: a baseline of the paper, or of the work that it builds on, whose definition is known; written from that definition.
- **surrogate**: a stand-in for a baseline whose definition could not be found. Its numbers are not those of the original, and
  are marked "(surrogate)".
- **peer**: a method that users use, and that the paper does not compare with."""

CANDIDATES = (
    "The paper states neither how many candidates there are, nor how many are added, nor in how many rounds: here r = n/10, "
    "at least 200 and at most n; r/10; 3."
)


def build(
    lines: Iterable[Line],
    jobs: Iterable[Job],
    *,
    figures: Path | None = None,
    diagnosis: str | None = None,
    mixed: str | None = None,
) -> str:
    """The page.

    Parameters
    ----------
    lines : of the runs
    jobs : the runs that should be there; what is missing of them is listed
    figures : folder for the figures, which the page names relative to its parent; None for a page without
    diagnosis : text that follows the table of losses
    mixed : the page of benchmarks/mixed.py
    """
    lines = latest(lines)
    sections = [
        INTRODUCTION,
        _header(lines),
        TIERS,
        f"## Verdicts\n\n{verdicts.table(lines)}\n\nThe rules:\n\n{verdicts.RULES}",
        _losses(lines, diagnosis),
        *(f"## {title}\n\n{_item(item, lines, figures)}" for item, title in TITLES.items()),
        f"## {QUALITY}\n\n{quality.section(lines)}",
        *([f"#{mixed.strip()}"] if mixed else []),
        f"## Missing runs\n\n{missing(lines, jobs)}",
        f"## Runs without an answer\n\n{without_answer(lines)}",
    ]
    return "\n\n".join(sections) + "\n"


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
    """Versions, and for each item the sets, seeds and runs."""
    versions: dict[str, set[str]] = {}
    for line in lines:
        for package, version in line.get("versions", {}).items():
            versions.setdefault(package, set()).add(version)
    named = ", ".join(f"{package} {' / '.join(sorted(versions[package]))}" for package in sorted(versions))
    rows = []
    for item in TITLES:
        mine = [line for line in lines if line["item"] == item]
        seeds = {name: {line["seed"] for line in mine if line["dataset"] == name} for name in _names(mine)}
        words = ", ".join(f"{name} ({len(found)})" for name, found in seeds.items())
        answered = sum("verdict" in line for line in mine)
        rows.append([item, words or "missing", str(len(mine)), str(answered)])
    return f"Versions: {named or 'no runs'}.\n\n" + markdown(
        ["item", "sets (seeds)", "runs", "with an answer"], rows, left=2
    )


def _names(lines: Sequence[Line]) -> list[str]:
    return sorted({line["dataset"] for line in lines})


def _losses(lines: Sequence[Line], diagnosis: str | None) -> str:
    intro = (
        "## Where MOSAIC() loses most\n\nThe gap is the distance to the best contestant, divided by the typical difference "
        "between contestants in this measure; each set of an item counts once, at its worst setting."
    )
    return "\n\n".join([intro, losses.table(lines), *([diagnosis.strip()] if diagnosis else [])])


def _item(item: str, lines: Sequence[Line], figures: Path | None) -> str:
    """Figure and tables of one item."""
    mine = latest(lines, item)
    if not mine:
        return NO_LINES
    parts = []
    if item in FIGURES and figures is not None and any("verdict" in line for line in mine):
        path = FIGURES[item](mine, figures / f"{item}.png")
        if path is not None:
            parts.append(f"![{TITLES[item]}]({figures.name}/{path.name})")
    return "\n\n".join([*parts, *BODIES[item](mine)])


def _faces(lines: Sequence[Line]) -> list[str]:
    words = "Five subjects at random, fifteen faces picked; a group is a subject under light from the left, the right or ahead."
    return [words, faces.table(lines)]


def _robustness(lines: Sequence[Line]) -> list[str]:
    return ["Share of outliers among the picks, mean over the ratios; less is better.", robustness.table(lines)]


def _classification(lines: Sequence[Line]) -> list[str]:
    words = (
        "Each set is split 70/10/20 for every seed; picks come from 600 of the training rows, settings are chosen on the "
        "validation part, accuracies are those on the test part."
    )
    parts = [words]
    for dataset in classification.sets_of(lines):
        parts += [f"### {dataset}", classification.table(lines, dataset)]
    parts += ["### Mean rank over all sets", classification.rank_table(lines)]
    found = scalable.table(lines)
    words = (
        "Means over k and seeds, of runs that both have; a difference above zero is in favour of the scalable variant, "
        f"± is over seeds. {CANDIDATES} Of 600 rows that is 200, so that a third of them are candidates from the start."
    )
    return [*parts, *(["### Accuracy of the scalable variant", words, found] if found else [])]


def _running_time(lines: Sequence[Line]) -> list[str]:
    words = (
        "Processor seconds for picking 20 of n patches (8×8, colour) of photographs, methods with their defaults, one after "
        "the other on one core; solvers go to a relative gap of 10⁻³. They depend on the machine, and below a hundredth of a "
        "second its clock is too coarse to compare."
    )
    found = running_time.scalable_table(lines)
    more = (
        f"{CANDIDATES} The ADMM and the working set, which are for all points, prove a gap of 10⁻³. On these patches, whose "
        "similarities have almost full rank, the scalable variant does not where r < n; nor does MOSAIC (paper) beyond "
        "n = 1000, where the rank of its factor of the kernel is limited, and it takes less time for more points. Accuracies "
        "are [above](#accuracy-of-the-scalable-variant)."
    )
    return [words, running_time.table(lines), *(["### Time of the scalable variant", more, found] if found else [])]


def _saliency(lines: Sequence[Line]) -> list[str]:
    words = (
        "Patches of 8×8 pixels, scored within each photograph; mean ± standard deviation over photographs. Objects are mostly in "
        "the middle: compare with the last line, a map that does not look at the picture."
    )
    return [words, saliency.table(lines), *filter(None, [saliency.baselines(lines)])]


def _structured(lines: Sequence[Line]) -> list[str]:
    parts = []
    for measure in MEASURES["structured"]:
        parts += [f"### {measure.title}, by ratio of outliers to inliers", structured.table(lines, measure)]
    return parts


def _f1_table(lines: Sequence[Line]) -> list[str]:
    parts = ["Swiss roll with repetitive outliers, by ratio; F1 at the best threshold of each method."]
    for dataset in f1_table.sets_of(lines):
        for measure in MEASURES["f1_table"]:
            heading = f"### Ambient dimension {f1_table.dimension_of(dataset)}, {measure.title}"
            parts += [heading, f1_table.table(lines, dataset, measure)]
    return parts


BODIES: Mapping[str, Callable[[Sequence[Line]], list[str]]] = {
    "faces": _faces,
    "robustness": _robustness,
    "classification": _classification,
    "running_time": _running_time,
    "saliency": _saliency,
    "structured": _structured,
    "f1_table": _f1_table,
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
    from experiments.items import jobs_of

    parser = argparse.ArgumentParser(description="Write the results page from the lines of the runs.")
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where the runs wrote their lines")
    parser.add_argument("--out", type=Path, default=OUT, help="the page; figures go into figures/ beside it")
    parser.add_argument("--slice", choices=["small", "all"], default="all", help="which runs should be there")
    options = parser.parse_args(arguments)
    small = options.slice == "small"
    jobs = [job for item in TITLES for job in jobs_of(item, small=small)]
    diagnosis = DIAGNOSIS.read_text() if DIAGNOSIS.exists() and not small else None  # it is about all runs
    mixed = MIXED.read_text() if MIXED.exists() else None
    options.out.parent.mkdir(parents=True, exist_ok=True)
    page = build(read(options.folder), jobs, figures=options.out.parent / "figures", diagnosis=diagnosis, mixed=mixed)
    options.out.write_text(page)


if __name__ == "__main__":
    main()
