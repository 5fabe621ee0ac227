"""What a run asks of a method: on which case, how it is called, by what it is judged.

A task knows which methods can be asked, how a job becomes a case (and a validation case, on which settings are chosen), and
which numbers of the judge decide between settings. All numbers are the judge's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal

from experiments import judge, methods
from experiments.datasets import Case, Dataset, case, case_of_split, five_subjects, load, make_case, patches, picture, split
from experiments.datasets.pictures import NAME as PHOTOGRAPHS
from experiments.datasets.synthetic import is_manifold
from experiments.job import Job
from experiments.judge import Verdict
from experiments.methods import Detector, Picks, Scores, Selector

#: Validation cases are other draws than those of any run, and several: the best of a grid on one draw may be its luck.
VALIDATION_SEED, VALIDATION_DRAWS = 100_000, 3
#: Pictures whose saliency maps are kept for the page.
SHOWN = 4


@dataclass(frozen=True)
class Task:
    """How jobs of a kind are run.

    Attributes
    ----------
    methods : those that can be asked, by name
    case : of a job, or the validation case of a number
    judge : (case, result) to numbers
    best : the judge's numbers that decide between settings, the first before the second, the larger the better; None where
        methods keep their defaults
    keep : what else of a result goes into the line, for pictures
    validated_each_seed : whether settings are chosen for every seed, as where each seed splits one set anew, on that split alone
    """

    methods: Callable[[], Mapping[str, Selector | Detector]]
    case: Callable[[Job, int | None], Any]
    judge: Callable[[Any, Any], Verdict]
    best: Callable[[Verdict], tuple[float, ...]] | None
    keep: Callable[[Job, Any, Any], Mapping[str, Any]] = lambda job, task, result: {}
    validated_each_seed: bool = False


def settings_key(job: Job) -> tuple[Any, ...]:
    """What settings are chosen for: all but the item, and the seed where one choice serves all seeds."""
    key = (job.task, job.method, job.dataset, job.contamination, job.ratio, job.n, job.k)
    return (*key, job.seed) if TASKS[job.task].validated_each_seed else key


def _seed(job: Job, validation: int | None) -> int:
    return job.seed if validation is None else VALIDATION_SEED + validation


def _drawn(job: Job, validation: int | None) -> Case:
    settings = {"contamination": job.contamination, "ratio": job.ratio, "n": job.n}
    seed = _seed(job, validation)
    if is_manifold(job.dataset):
        return case(job.dataset, **settings, seed=seed)  # type: ignore[arg-type]
    return make_case(_loaded(job.dataset), **settings, seed=seed)  # type: ignore[arg-type]


@lru_cache(maxsize=2)
def _loaded(name: str) -> Dataset:
    """Reading and checking a file takes longer than many a run."""
    return load(name)


def _split(job: Job, validation: int | None) -> Case:
    dataset = _loaded(job.dataset)
    on: Literal["validation", "test"] = "test" if validation is None else "validation"
    return case_of_split(dataset, split(dataset, job.seed), on, n=job.n, seed=job.seed)


def _faces(job: Job, validation: int | None) -> Case:
    return five_subjects(_seed(job, validation))


def _picture(job: Job, validation: int | None) -> Any:
    return picture(job.seed if validation is None else -1 - validation)  # the last ones are in no item


def _images(job: Job, validation: int | None) -> Case:
    """Patches of photographs, or whole pictures."""
    return patches(job.n, job.seed) if job.dataset.startswith(PHOTOGRAPHS) else _drawn(job, validation)


def _detection(task: Case, result: Scores) -> Verdict:
    encoded = {} if result.R is None else judge.judge_encoding(task, result.R)
    return {**judge.judge_outliers(task.is_outlier, result.values, result.flagged), **encoded}


def _classification(task: Case, result: Picks) -> Verdict:
    verdict = judge.judge_selection(task, result)
    if result.errors is None:
        return verdict
    errors = result.errors()
    return {**verdict, "error_mean": float(errors.mean()), "error_max": float(errors.max())}


def _lights(task: Case, result: Picks) -> Verdict:
    return {**judge.judge_selection(task, result), **judge.judge_light(task, result)}


def _saliency(task: Any, result: Scores) -> Verdict:
    return judge.judge_saliency(task, result.values)


def _nothing_but_time(task: Case, result: Picks) -> Verdict:
    return {"n_picks": len(result.indices)}


def _rows(job: Job, task: Case, result: Picks) -> Mapping[str, Any]:
    return {"rows": [int(row) for row in task.rows[result.indices]]}


def _map(job: Job, task: Any, result: Scores) -> Mapping[str, Any]:
    if job.seed >= SHOWN:
        return {}
    return {"map": [round(float(value), 3) for value in judge.scaled(result.values)]}


# Looked up when asked, so that a test can put a stand-in there. Variants are run only by items that name them.
def _selectors() -> Mapping[str, Selector]:
    return {**methods.all_selector_variants(), **methods.all_selectors()}


def _detectors() -> Mapping[str, Detector]:
    return {**methods.all_detector_variants(), **methods.all_detectors()}


def _timed() -> Mapping[str, Selector]:
    return {**methods.all_selectors(), **methods.all_solvers()}


def _accurate(verdict: Verdict) -> tuple[float, ...]:
    """Accuracy where there are classes, the explained share where there are none."""
    return _numbers(verdict, "explained_share" if verdict["accuracy_1nn"] is None else "accuracy_1nn")


def _clean(verdict: Verdict) -> tuple[float, ...]:
    """As few outliers as possible, which is what the figure shows; of equal ones the set that explains most."""
    share = verdict["outlier_share"]
    return (-1.0 if share is None else -share, *_numbers(verdict, "explained_share"))


def _auc(verdict: Verdict) -> tuple[float, ...]:
    return _numbers(verdict, "auc")


def _numbers(verdict: Verdict, name: str) -> tuple[float, ...]:
    value = verdict[name]
    return () if value is None else (float(value),)


_SELECT = Task(_selectors, _drawn, judge.judge_selection, _accurate)
TASKS: Mapping[str, Task] = MappingProxyType(
    {
        "select": _SELECT,
        "robustness": replace(_SELECT, best=_clean),
        "classify": replace(_SELECT, case=_split, judge=_classification, validated_each_seed=True),
        "faces": replace(_SELECT, case=_faces, judge=_lights, keep=_rows),
        "detect": Task(_detectors, _drawn, _detection, _auc),
        # Sets that mark their own outliers cannot be drawn anew: settings would be chosen by the answers.
        "detect as is": Task(_detectors, _drawn, _detection, None),
        "saliency": Task(_detectors, _picture, _saliency, _auc, _map),
        "time": Task(_timed, _images, _nothing_but_time, None),
    }
)
