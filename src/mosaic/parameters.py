"""Parameters: kernels and algorithms that have settings of their own, what to say of a wrong name, and checks of single values.

Settings follow scikit-learn's conventions: ``clone``, ``set_params(algorithm__alpha=5)`` and grid search over it work. NumPy is
not imported: the command line begins here.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, fields
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, ClassVar, Self

from mosaic.exceptions import InvalidInputError

#: Kernels of pairs of rows, and those of numbers that are taken as they are: also degrees, bits and counts.
PAIRWISE = ("precomputed", "distances")
TAKEN_AS_GIVEN = (*PAIRWISE, "haversine", "tanimoto")
#: Names that ``mosaic.kernels.make_kernel`` knows.
KERNELS = (
    "rbf",
    "laplacian",
    "polynomial",
    "linear",
    "cosine",
    "tanimoto",
    "haversine",
    "diffusion",
    "precomputed",
    "distances",
)
#: Values of other parameters that take one of a few words.
CHOICES = {
    "algorithm": ("paper",),
    "outliers": ("reject", "keep", "report"),
    "suspects": ("drop", "keep"),
}


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, as they are."""
    return {each.name: getattr(value, each.name) for each in fields(value)}


class Named:
    """A class whose constructor and ``set_params`` answer a name that they do not know with the name that was meant."""

    def __new__(cls, *args: object, **parameters: object) -> Self:
        cls._refuse_unknown(parameters)
        return super().__new__(cls)

    def set_params(self, **params: object) -> Self:
        """Change parameters, given by name; ``algorithm__alpha`` is alpha of the algorithm."""
        self._refuse_unknown(params)
        changed: dict[str, Any] = {}
        for name in sorted(params, key=lambda name: "__" in name):
            first, _, rest = name.partition("__")
            if not rest:
                changed[first] = params[name]
                continue
            owner = changed.get(first, getattr(self, first))
            owner = BY_NAME[owner]() if isinstance(owner, str) and owner in BY_NAME else copy(owner)
            if not hasattr(owner, "set_params"):
                remedy = f"Set {ELSEWHERE[rest]}." if rest in ELSEWHERE else None
                raise InvalidInputError(
                    f"has no settings, and so no {rest}", remedy, parameter=first, value=owner
                )
            changed[first] = owner.set_params(**{rest: params[name]})
        vars(self).update(changed)  # at the end, so that a call that is refused has set nothing
        return self

    @classmethod
    def _refuse_unknown(cls, names: Iterable[str]) -> None:
        known = list(inspect.signature(cls.__init__).parameters)[1:]
        for name in names:
            if name.partition("__")[0] in known:
                continue
            there = ELSEWHERE.get(name, "")
            close = get_close_matches(name, known, n=1, cutoff=0.65)
            if there.partition("=")[0] in known:
                remedy = f"Did you mean {cls.__name__}({there})?"
            else:
                remedy = f"Did you mean {close[0]}?" if close else f"It has {', '.join(known)}."
            raise InvalidInputError(f"{cls.__name__} has no parameter {name}", remedy)


class Parameters(Named):
    """Settings that scikit-learn reads, sets and copies as those of an estimator."""

    name: ClassVar[str]

    def __repr__(self) -> str:
        own = ((field.name, getattr(self, field.name), field.default) for field in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value, usual in own if value != usual)})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        own = fields_of(self)
        inner = {
            name: value.get_params()
            for name, value in own.items()
            if deep and hasattr(value, "get_params")
        }
        return own | {
            f"{name}__{key}": value for name, found in inner.items() for key, value in found.items()
        }


@dataclass(repr=False)
class Polynomial(Parameters):
    """The kernel (γ xᵀy + coef0)^degree."""

    degree: int = 3
    coef0: float = 1.0

    name: ClassVar[str] = "polynomial"


@dataclass(repr=False)
class Diffusion(Parameters):
    """The heat kernel of the graph that joins every point with its ``n_neighbors`` nearest ones, after ``time`` steps."""

    n_neighbors: int = 10
    time: int = 2

    name: ClassVar[str] = "diffusion"


@dataclass(repr=False)
class Sketch(Parameters):
    """Settings of ``Paper(sketch=…)``: Algorithm 3 instead of 1, the program with few candidates.

    Parameters
    ----------
    n_initial : candidates at first (the paper's r), drawn at random
    n_added : candidates that a round adds (r̂), the points that are represented worst
    n_rounds : rounds (I); the answer is that of the last
    """

    n_initial: int = 500
    n_added: int = 50
    n_rounds: int = 3


@dataclass(repr=False)
class Paper(Parameters):
    """Algorithm 1 as written: non-zero rows by influence, pruning by shared information, outliers by their probability.

    Parameters
    ----------
    alpha : strength of the program, as a multiple of the critical one; 10 by default
    lam : strength itself, instead of alpha
    row_norm : "l2" as in the paper's algorithms, or "linf" as in its theorem on coverage, with an n×n unknown
    diversity : share of the distances k_xx + k_yy − 2 k_xy that pruning keeps, "auto" for 0.95
    op_threshold : rows with a higher outlier probability are rejected; by default those with an effective count below 2, and none
        where all that pruning keeps are below it
    solver : "auto", or the name of an algorithm (``mosaic.program.SolverName``)
    tol : relative gap to which the program is solved. At 1e-10 the non-zero rows are those of the optimum; a larger one has
        more. Where the optimum is not unique, neither are its non-zero rows: the certificate is about the value
    max_iter : steps of first-order solvers
    max_rank : columns of the kernel's factor. By default one for each point up to 1000 points, and 500 for more. A higher rank
        gives a finer kernel and a tighter certificate, and costs its cube
    sketch : a ``Sketch``, for Algorithm 3 instead of Algorithm 1; the answer is that of its last round

    Examples
    --------
    >>> from mosaic import MOSAIC, Paper
    >>> model = MOSAIC(20, algorithm=Paper(alpha=5.0)).set_params(algorithm__diversity=0.9)
    >>> model.algorithm.alpha, model.algorithm.diversity
    (5.0, 0.9)
    """

    alpha: float | None = None
    lam: float | None = None
    row_norm: str = "l2"
    diversity: float | str = "auto"
    op_threshold: float | None = None
    solver: str = "auto"
    tol: float = 1e-10
    max_iter: int = 10_000
    max_rank: int | None = None
    sketch: Sketch | None = None

    name: ClassVar[str] = "paper"


#: Kernels that have settings.
KERNELS_WITH_SETTINGS: tuple[type[Parameters], ...] = (Polynomial, Diffusion)
#: The names that stand for kernels and the algorithm with their default settings.
BY_NAME: dict[str, type[Parameters]] = {kind.name: kind for kind in KERNELS_WITH_SETTINGS} | {
    "paper": Paper
}
#: Where settings are that a user may look for among the parameters of an estimator, and other words for parameters.
ELSEWHERE = {
    each.name: f"{'algorithm' if name in CHOICES['algorithm'] else 'kernel'}={kind.__name__}({each.name}=…)"
    for name, kind in BY_NAME.items()
    for each in fields(kind)  # type: ignore[arg-type]
} | {
    **{each.name: f"algorithm=Paper(sketch=Sketch({each.name}=…))" for each in fields(Sketch)},
    "mode": "algorithm='paper'",
    **dict.fromkeys(("k", "n", "n_clusters", "n_components", "n_samples"), "n_representatives=…"),
    **dict.fromkeys(("seed", "random_seed"), "random_state=…"),
    **dict.fromkeys(("metric", "similarity", "affinity"), "kernel=…"),
}


def name_of(value: object) -> Any:
    return value.name if isinstance(value, Parameters) else value


def is_whole(value: object, least: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def _wrong(parameter: str, value: Any, fault: str, remedy: str | None = None) -> InvalidInputError:
    # Messages show 0.5 and not np.float64(0.5).
    value = value.item() if getattr(value, "ndim", None) == 0 else value
    return InvalidInputError(fault, remedy, parameter=parameter, value=value)


def whole_number(
    parameter: str, value: Any, *, at_least: int = 1, remedy: str | None = None
) -> int:
    if not is_whole(value, at_least):
        raise _wrong(parameter, value, f"must be a whole number >= {at_least}", remedy)
    return int(value)


def real_number(
    parameter: str,
    value: object,
    *,
    at_least: float = -math.inf,
    above: float = -math.inf,
    at_most: float = math.inf,
    below: float = math.inf,
    meaning: str | None = None,
    remedy: str | None = None,
) -> float:
    """A finite number within bounds, which are included (``at_least``, ``at_most``) or excluded (``above``, ``below``)."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if at_least <= number <= at_most and above < number < below:
        return number
    bounds = {">=": at_least, ">": above, "<=": at_most, "<": below}
    said = " and ".join(
        f"{sign} {bound:g}" for sign, bound in bounds.items() if math.isfinite(bound)
    )
    if math.isfinite(at_least) and math.isfinite(at_most):
        said = f"between {at_least:g} and {at_most:g}"
    fault = " ".join(
        part
        for part in ("must be a finite number", said, f"({meaning})" if meaning else "")
        if part
    )
    raise _wrong(parameter, value, fault, remedy)


def as_bytes(budget: object) -> float | None:
    """A memory budget in bytes, from a number or text: units are kB, MB, GB, TB, or KiB, MiB, GiB, TiB (also K, M, G, T)."""
    if budget is None:
        return None
    value = float(budget) if isinstance(budget, Real) and not isinstance(budget, bool) else math.nan
    if isinstance(budget, str):
        written = re.fullmatch(
            r"(\d+(?:\.\d*)?|\.\d+)\s*(?:([kmgt])(i?b?)|b?)", budget.strip().lower()
        )
        if written is not None:
            value = float(written[1]) * (1000 if written[3] == "b" else 1024) ** (
                " kmgt".index(written[2] or " ")
            )
        if written is not None and written[2] is None and 0 < value < 1000:
            raise _wrong(
                "memory_budget",
                budget,
                f"is {value:g} bytes",
                f"Write the unit, as in {budget.strip()}GB.",
            )
    fault = "must be a number of bytes > 0, or text such as 2GiB, 500MB or 1000000"
    if not 0 < value < math.inf:
        raise _wrong(
            "memory_budget", budget, fault, "By default it is a quarter of the free memory."
        )
    return value


def one_of(parameter: str, value: object, allowed: Sequence[str]) -> str:
    if isinstance(value, str) and value in allowed:
        return value
    *others, last = map(repr, allowed)
    raise _wrong(parameter, value, f"must be {', '.join(others)} or {last}")


def check_kernel(kernel: object) -> None:
    if (
        (isinstance(kernel, str) and kernel in KERNELS)
        or callable(kernel)
        or isinstance(kernel, KERNELS_WITH_SETTINGS)
    ):
        return
    objects = ", ".join(f"{kind.__name__}(…)" for kind in KERNELS_WITH_SETTINGS)
    fault = (
        f"must be {', '.join(map(repr, KERNELS))}, {objects} or a function of two sets of points"
    )
    raise _wrong("kernel", kernel, fault, "Leave it at 'rbf'.")


def check_strength(alpha: object, lam: object) -> None:
    """Refuse a strength that is no number, one that selects nothing, and both at once. None means the default."""
    if alpha is not None and lam is not None:
        fault = f"give `alpha` or `lam`, not both; got alpha={alpha!r} and lam={lam!r}"
        raise InvalidInputError(fault, "Leave one of them at None.")
    if lam is not None:
        real_number("lam", lam, above=0)
    if alpha is not None:
        meaning = "a multiple of the critical strength"
        remedy = "At 1 or below nothing is selected."
        real_number("alpha", alpha, above=1, meaning=meaning, remedy=remedy)


def check_seed(random_state: object) -> None:
    is_generator = type(random_state).__name__ in ("Generator", "RandomState")
    if not (random_state is None or is_generator or is_whole(random_state, 0)):
        raise _wrong(
            "random_state",
            random_state,
            "must be a whole number >= 0, a generator or None",
            "Leave it at 0.",
        )


def check_jobs(n_jobs: int | None) -> int | None:
    if n_jobs is None or (
        isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool) and n_jobs != 0
    ):
        return n_jobs
    raise _wrong(
        "n_jobs", n_jobs, "must be a whole number other than 0, or None", "Use -1 for all cores."
    )
