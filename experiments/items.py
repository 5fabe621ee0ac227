"""Which runs each item of the paper needs, and those of our own comparison."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from experiments.job import Job

#: Contestants of the classification and robustness items, those of the paper first.
SELECTORS = (
    "MOSAIC", "MOSAIC (paper)", "SMRS", "DS3", "SSM", "K-medoids", "M-kmeans", "Précis", "TED", "RRQR", "CUR",
    "random", "k-means", "k-means++", "farthest point", "facility location", "facility location with exchanges",
    "herding", "RPCholesky",
)  # fmt: skip
#: Those of the paper's items: ours, what the paper compares with, and picks at random.
COMPARED = (*SELECTORS[:7], "random")
#: Ours and K-medoids on rows of unit length, beside the others for faces: light is the length of a picture.
BY_DIRECTION = ("MOSAIC (cosine)", "K-medoids (unit rows)")
#: The paper's variant for many points, and the same without refinement. They are compared with the method that they stand for.
SCALABLE, UNREFINED = "MOSAIC (paper, scalable)", "MOSAIC (paper, not refined)"
VARIANTS = (SCALABLE, UNREFINED)
#: Running times with this library's solver, beside ``methods.all_solvers``: the algorithms as published.
TIMED = ("MOSAIC", "MOSAIC (paper)", SCALABLE, "SMRS", "DS3", "SSM", "M-kmeans")
#: Ratios of outliers to inliers: of the paper's robustness figure, of its table, and of its last figure, which states none.
RATIOS = (0.1, 0.5, 1.0)
TABLE_RATIOS = (1.0, 2.0, 3.0, 4.0, 5.0)
STRUCTURED_RATIOS = (0.1, 1.0, 3.0, 5.0)
#: Inliers of the last two. The text has no number.
DETECTED = 300
#: "A high-dimensional space": dimensions that the text allows.
AMBIENT = (10, 50, 20, 100)
#: Dimensions of the table, which states none either.
TABLE_AMBIENT = (5, 7, 10, 20)
CLASSIFIED = ("usps", "mnist", "isolet", "yaleb", "digits")
#: Points of the running times: patches of photographs, and pictures of digits.
IMAGES = ("msra_b/patches", "mnist")
#: Photographs whose salient objects are looked for, faces that are picked of five subjects, and points of the running times.
PHOTOGRAPHS, FACES, SIZES = 20, 15, (25, 50, 100, 250, 500, 1000, 2000, 4000, 8000)
#: What the paper compares its detector with.
DETECTION_RIVALS = ("FDR (surrogate)", "L1-KPCA", "RML (surrogate)")
DETECTORS = ("MOSAIC", "MOSAIC (paper)", *DETECTION_RIVALS)
#: Runs of an item, by contestant: 50 as in the paper, fewer of the slow ones for want of time; and of all that are not named.
OTHERS = "others"
RUNS: dict[str, dict[str, int]] = {
    "faces": {OTHERS: 50},
    "robustness": {OTHERS: 50, "DS3": 10},
    "classification": {OTHERS: 10},
    "running_time": {OTHERS: 3},
    "structured": {OTHERS: 50},
    "structured_defaults": {OTHERS: 50},
    "f1_table": {OTHERS: 50},
    "f1_defaults": {OTHERS: 50},
}


def runs_of(item: str, method: str) -> int | None:
    """How many runs an item has of a contestant; None where all have the same number.

    Examples
    --------
    >>> runs_of("robustness", "SMRS"), runs_of("clean", "DS3")
    (50, None)
    """
    runs = RUNS.get(item)
    return None if runs is None else runs.get(method, runs[OTHERS])


def _seeds(item: str, method: str, small: bool) -> range:
    return range(1 if small else runs_of(item, method) or 0)


def faces(small: bool) -> Iterator[Job]:
    """Faces of five subjects under many lights."""
    for method in (*COMPARED, *BY_DIRECTION):
        for seed in _seeds("faces", method, small):
            yield Job("faces", "faces", method, "yaleb/5", None, 0.0, None, FACES, seed)


def robustness(small: bool) -> Iterator[Job]:
    """Share of outliers among the picks: manifolds with uniform or repetitive outliers, faces with natural images."""
    kinds = {"sphere": "uniform", "trefoil": "uniform", "swiss_roll": "repetitive"}
    sets = [(ambient(name, d), kind) for d in ((50,) if small else AMBIENT) for name, kind in kinds.items()]
    for (name, kind), ratio, method in product([*sets, ("frey", "images")], (0.5,) if small else RATIOS, COMPARED):
        for seed in _seeds("robustness", method, small):
            yield Job("robustness", "robustness", method, name, kind, ratio, 300, 20, seed)


def classification(small: bool) -> Iterator[Job]:
    """Accuracy of classifiers that know the labels of k representatives only."""
    sets = ("digits",) if small else CLASSIFIED
    for name, k, method in product(sets, (30,) if small else (10, 30, 100), (*COMPARED, *VARIANTS)):
        for seed in _seeds("classification", method, small):
            yield Job("classification", "classify", method, name, None, 0.0, 600, k, seed)


def running_time(small: bool) -> Iterator[Job]:
    """Seconds for patches of photographs and for whole pictures: as published, and with this library's solver."""
    from experiments.methods import all_solvers

    for n, name, method in product(SIZES[2:4] if small else SIZES, IMAGES, (*all_solvers(), *TIMED)):
        for seed in _seeds("running_time", method, small):
            yield Job("running_time", "time", method, name, None, 0.0, n, 20, seed)


def saliency(small: bool) -> Iterator[Job]:
    """Patches of a photograph that do not belong to the others; the seed is the number of the photograph."""
    for method, number in product(DETECTORS, range(2 if small else PHOTOGRAPHS)):
        yield Job("saliency", "saliency", method, "msra_b", None, 0.0, None, None, number)


def structured(small: bool) -> Iterator[Job]:
    """Detection of natural images among faces."""
    yield from _detection("structured", "detect", "frey", "images", STRUCTURED_RATIOS[1:2] if small else STRUCTURED_RATIOS, small)


def structured_defaults(small: bool) -> Iterator[Job]:
    """The paper's rivals with the settings of their authors, as far as these are known: our defaults."""
    ratios = STRUCTURED_RATIOS[1:2] if small else STRUCTURED_RATIOS
    yield from _detection("structured_defaults", "detect as is", "frey", "images", ratios, small)


def f1_table(small: bool) -> Iterator[Job]:
    """F1 on the swiss roll with repetitive outliers, for ambient dimensions that the paper does not state."""
    for d in TABLE_AMBIENT[:1] if small else TABLE_AMBIENT:
        ratios = TABLE_RATIOS[:2] if small else TABLE_RATIOS
        yield from _detection("f1_table", "detect", ambient("swiss_roll", d), "repetitive", ratios, small)


def f1_defaults(small: bool) -> Iterator[Job]:
    """The paper's rivals with the settings of their authors, as far as these are known: our defaults."""
    for d in TABLE_AMBIENT[:1] if small else TABLE_AMBIENT:
        ratios = TABLE_RATIOS[:2] if small else TABLE_RATIOS
        yield from _detection("f1_defaults", "detect as is", ambient("swiss_roll", d), "repetitive", ratios, small)


def _detection(item: str, task: str, name: str, kind: str, ratios: tuple[float, ...], small: bool) -> Iterator[Job]:
    for ratio, method in product(ratios, DETECTORS if task == "detect" else DETECTION_RIVALS):
        for seed in _seeds(item, method, small):
            yield Job(item, task, method, name, kind, ratio, DETECTED, None, seed)


def ambient(name: str, d: int) -> str:
    """A manifold in d dimensions, by the name of its set.

    Examples
    --------
    >>> ambient("sphere", 50)
    'sphere/50'
    """
    return f"{name}/{d}"


#: Sets with classes beyond those of the paper, and sets whose classes are looked at among outliers.
MORE_CLASSES = ("cifar10", "olivetti", "orl", "pbmc", "basehock")
SPOILED = ("digits", "usps", "mnist", "isolet", "yaleb", "orl", "pbmc", "cifar10")
#: Sets that get natural images among their outliers, which can only be mixed with images; the others get heavy-tailed ones.
PICTURES = ("digits", "usps", "mnist", "yaleb", "orl")
#: Inliers of an ADBench set, at most.
ADBENCH_SIZE = 1000
#: Detectors that are asked whether outliers can be told from inliers at all: the fast ones.
FAST = ("MOSAIC", "kNN distance", "Isolation forest", "LOF", "One-class SVM")
#: Detectors that decide by themselves how many rows are outliers.
DECIDING = ("MOSAIC", "MOSAIC (paper)", "LOF", "Isolation forest", "One-class SVM", "ECOD", "COPOD", "HBOS")
#: Rows of a set that is looked at without outliers; the sets that have fewer give all of them.
UNSPOILT_SIZE, SMALLER = 600, {"orl": 400, "olivetti": 400}
#: Sets with classes on which choices were made (rules, constants), and those on which they were confirmed.
CHOOSING = ("digits", "isolet", "orl", "pbmc", "basehock")
CONFIRMING = ("usps", "mnist", "yaleb", "cifar10", "olivetti")
#: Kinds of added outliers, likewise.
KINDS = {"choosing": ("uniform", "columns", "far"), "confirming": ("heavy-tailed", "shuffled", "images")}


def adbench_sets() -> list[str]:
    """The sets that mark their own outliers, by name."""
    from experiments.datasets.real import ADBENCH, real_sets

    return sorted(name for name in real_sets() if name.startswith(ADBENCH))


def halves() -> dict[str, tuple[str, ...]]:
    """The sets of the choosing and of the confirming half; those that mark their own outliers take turns."""
    marked = adbench_sets()
    return {"choosing": (*CHOOSING, *marked[::2]), "confirming": (*CONFIRMING, *marked[1::2])}


def clean(small: bool) -> Iterator[Job]:
    """Classification with representatives, as in the paper: more sets, and on the paper's those whom it does not compare with."""
    sets = ("pbmc",) if small else (*MORE_CLASSES, *CLASSIFIED)
    for name, k, method in product(sets, (30,) if small else (10, 30, 100), SELECTORS):
        for seed in range(1 if small else 5):
            if name in CLASSIFIED and method in COMPARED:
                continue
            yield Job("clean", "classify", method, name, None, 0.0, 600, k, seed)


def spoiled(small: bool) -> Iterator[Job]:
    """Classification with representatives that are chosen among outliers."""
    for (name, kind, ratio), method in product(_spoiled_cases(small), SELECTORS):
        for seed in range(1 if small else 5):
            yield Job("spoiled", "select", method, name, kind, ratio, 280, 30, seed)


def separable(small: bool) -> Iterator[Job]:
    """Whether the outliers of ``spoiled`` can be told from the inliers at all: detection on the very same draws."""
    for (name, kind, ratio), method in product(_spoiled_cases(small), FAST):
        for seed in range(1 if small else 5):
            yield Job("separable", "detect as is", method, name, kind, ratio, 280, None, seed)


def _spoiled_cases(small: bool) -> Iterator[tuple[str, str, float]]:
    """Set, kind and ratio of outliers."""
    for name, ratio in product(("digits",) if small else SPOILED, (1.0,) if small else (0.3, 1.0)):
        third = "images" if name in PICTURES else "heavy-tailed"
        for kind in ("uniform",) if small else (*KINDS["choosing"], "shuffled", third):
            yield name, kind, ratio


def adbench(small: bool) -> Iterator[Job]:
    """Outliers that the sets mark themselves; every method with its defaults."""
    from experiments.methods import all_detectors

    for name, method in product(adbench_sets()[: 2 if small else None], all_detectors()):
        for seed in range(1 if small else 5):
            yield Job("adbench", "detect as is", method, name, None, 0.0, ADBENCH_SIZE, None, seed)


def unspoilt(small: bool) -> Iterator[Job]:
    """How many rows are flagged where there are no outliers."""
    for name, method in product(("digits",) if small else (*CLASSIFIED, *MORE_CLASSES), DECIDING):
        for seed in range(1 if small else 5):
            n = SMALLER.get(name, UNSPOILT_SIZE)
            yield Job("unspoilt", "detect as is", method, name, None, 0.0, n, None, seed)


def ablation(small: bool) -> Iterator[Job]:
    """MOSAIC, and MOSAIC without one of its rules or with another constant: selection and outliers on both halves."""
    from experiments.methods import all_detector_variants, all_selector_variants

    halves_ = {"choosing": CHOOSING[:1]} if small else {"choosing": CHOOSING, "confirming": CONFIRMING}
    for method, seed in product(("MOSAIC", *all_selector_variants()), range(1 if small else 3)):
        for half, sets in halves_.items():
            for name in sets:
                yield Job("ablation", "classify", method, name, None, 0.0, 280, 30, seed)
            for name, kind, ratio in _spoiled_cases(small):
                if name in sets and kind in KINDS[half]:
                    yield Job("ablation", "select", method, name, kind, ratio, 280, 30, seed)
    for method, seed in product(("MOSAIC", *all_detector_variants()), range(1 if small else 2)):
        for name in adbench_sets()[: 2 if small else None]:
            yield Job("ablation", "detect as is", method, name, None, 0.0, ADBENCH_SIZE, None, seed)


#: What decides most, and is asked for most often, first.
PAPER = {
    "robustness": robustness,
    "f1_table": f1_table,
    "f1_defaults": f1_defaults,
    "faces": faces,
    "structured": structured,
    "structured_defaults": structured_defaults,
    "classification": classification,
    "saliency": saliency,
    "running_time": running_time,
}
#: And our own comparison, which runs when it is asked for by name.
OWN = {"clean": clean, "spoiled": spoiled, "separable": separable, "adbench": adbench, "unspoilt": unspoilt, "ablation": ablation}
ITEMS = {**PAPER, **OWN}


def jobs_of(item: str, *, small: bool = False) -> list[Job]:
    """The runs of an item; a small slice of them takes minutes."""
    return list(ITEMS[item](small))
