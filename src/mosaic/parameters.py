"""Parameters of an estimator that have settings of their own: kernels, the paper's algorithm, and its passes.

They follow scikit-learn's conventions: ``clone``, ``set_params(algorithm__alpha=5)`` and grid search over it work.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, ClassVar, Self

from mosaic.exceptions import InvalidInputError

#: Where settings are that a user may look for among the parameters of an estimator, and other words for parameters.
ELSEWHERE = {
    **{name: f"algorithm=Paper({name}=…)" for name in ("alpha", "lam", "diversity", "op_threshold")},
    **{name: f"algorithm=Paper({name}=…)" for name in ("solver", "max_iter", "max_rank")},
    **{name: f"algorithm=Sketch({name}=…)" for name in ("n_initial", "n_added", "n_rounds")},
    **{name: f"kernel=Polynomial({name}=…)" for name in ("degree", "coef0")},
    "n_neighbors": "kernel=Diffusion(n_neighbors=…)",
    "diffusion_time": "kernel=Diffusion(time=…)",
    "mode": "algorithm='paper'",
    "strategy": "algorithm='sketch'",
    **dict.fromkeys(("k", "n", "n_clusters", "n_components", "n_samples"), "n_representatives=…"),
    **dict.fromkeys(("seed", "random_seed"), "random_state=…"),
    **dict.fromkeys(("metric", "similarity", "affinity"), "kernel=…"),
}


class Named:
    """A class whose constructor and ``set_params`` answer a name that they do not know with the name that was meant."""

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        cls._refuse_unknown(parameters)
        return super().__new__(cls)

    def set_params(self, **params: Any) -> Self:
        """Change parameters, given by name; ``algorithm__alpha`` is alpha of the algorithm."""
        self._refuse_unknown(params)
        for name in list(params):
            first, _, rest = name.partition("__")
            value = params.get(first, getattr(self, first))
            if not rest or hasattr(value, "set_params"):
                continue
            if not isinstance(value, str) or value not in BY_NAME:
                remedy = f"Set {ELSEWHERE[rest]}." if rest in ELSEWHERE else None
                raise InvalidInputError(f"has no settings, and so no {rest}", remedy, parameter=first, value=value)
            params[first] = BY_NAME[value]()
        return super().set_params(**params)  # type: ignore[misc, no-any-return]

    @classmethod
    def _refuse_unknown(cls, names: Any) -> None:
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
        """The settings by name; ``deep`` adds those of settings that have their own."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        inner = {name: value.get_params() for name, value in own.items() if deep and hasattr(value, "get_params")}
        return own | {f"{name}__{key}": value for name, found in inner.items() for key, value in found.items()}

    def set_params(self, **params: Any) -> Self:
        """Change settings, given by name."""
        self._refuse_unknown(params)
        for name, value in params.items():
            first, _, rest = name.partition("__")
            if rest:
                getattr(self, first).set_params(**{rest: value})
            else:
                setattr(self, name, value)
        return self


@dataclass(repr=False)
class Polynomial(Parameters):
    """The kernel (γ xᵀy + coef0)^degree.

    Examples
    --------
    >>> from mosaic import MOSAIC, Polynomial
    >>> MOSAIC(kernel=Polynomial(degree=2)).get_params()["kernel__degree"]
    2
    """

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
    """Passes over the rows, whose certificate comes from few candidates for all points, the paper's Algorithm 3.

    Rows that do not fit into memory are read so in any case. The picks do not depend on it.

    Parameters
    ----------
    n_initial : candidates at first (the paper's r); by default 500, fewer beyond four million rows
    n_added : candidates that a round adds (r̂); by default a tenth of them
    n_rounds : rounds (I); by default up to three, while they are likely to lower the gap
    """

    n_initial: int | None = None
    n_added: int | None = None
    n_rounds: int | None = None

    name: ClassVar[str] = "sketch"


@dataclass(repr=False)
class Paper(Parameters):
    """Algorithm 1 as written: non-zero rows by influence, pruning by distance, outliers by their probability.

    Parameters
    ----------
    alpha : strength of the program, as a multiple of the critical one; 10 by default
    lam : strength itself, instead of alpha
    diversity : share of distances that pruning keeps, "auto" for 0.95
    op_threshold : rows with a higher outlier probability are rejected; by default those with an effective count below 2
    solver : "auto", or the name of an algorithm (``mosaic.program.SolverName``)
    max_iter : steps of first-order solvers
    max_rank : columns of the kernel's factor. By default one for each point up to 1000 points, and at most 500 for more. A higher
        rank gives a finer kernel and a tighter certificate, and costs its cube
    sketch : a ``Sketch``, for Algorithm 3 instead of Algorithm 1. Rows that do not fit into memory are chosen by it in any case

    Examples
    --------
    >>> from mosaic import MOSAIC, Paper
    >>> model = MOSAIC(20, algorithm=Paper(alpha=5.0)).set_params(algorithm__diversity=0.9)
    >>> model.algorithm.alpha, model.algorithm.diversity
    (5.0, 0.9)
    """

    alpha: float | None = None
    lam: float | None = None
    diversity: Any = "auto"
    op_threshold: float | None = None
    solver: Any = "auto"
    max_iter: int = 10_000
    max_rank: int | None = None
    sketch: Sketch | None = None

    name: ClassVar[str] = "paper"


def name_of(value: Any) -> Any:
    """The name of a kernel or an algorithm with settings; all else as it is."""
    return value.name if isinstance(value, Parameters) else value


#: The names that stand for kernels and algorithms with their default settings.
BY_NAME: dict[str, type[Parameters]] = {kind.name: kind for kind in (Polynomial, Diffusion, Sketch, Paper)}
