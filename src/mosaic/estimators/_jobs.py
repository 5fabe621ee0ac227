"""Methods of estimators that compute in ``n_jobs`` threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import Any, TypeVar

from joblib import effective_n_jobs

from mosaic.arrays.threads import available_threads, using_threads
from mosaic.arrays.xp import work_on_devices
from mosaic.checks import as_bytes, check_jobs

#: Bytes of a memory budget for every thread: its temporary blocks, about 10 MB, then take at most a tenth of the budget.
BUDGET_OF_A_THREAD = 1e8

Estimator = TypeVar("Estimator", bound=type[Any])


def computing_in_threads(estimator: Estimator) -> Estimator:
    """The class, whose public methods and properties compute in the threads that its ``n_jobs`` and budget allow.

    So whoever asks, from whatever thread, the linear algebra library has one thread meanwhile; see ``mosaic.arrays.threads``.
    """
    for name, member in list(vars(estimator).items()):
        if isinstance(member, property) and member.fget is not None:
            setattr(estimator, name, property(_in_threads(member.fget)))
        elif isfunction(member) and not name.startswith("_"):
            setattr(estimator, name, _in_threads(member))
    return estimator


def _in_threads(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with work_on_devices(), using_threads(threads_of(self)):
            return method(self, *args, **kwargs)

    return run


def threads_of(estimator: Any) -> int:
    """The number of threads of an estimator.

    Examples
    --------
    >>> from mosaic import MOSAIC
    >>> threads_of(MOSAIC(n_jobs=4)), threads_of(MOSAIC(n_jobs=4, memory_budget="200MB"))
    (4, 2)
    """
    n_jobs = check_jobs(estimator.n_jobs)
    count = available_threads() if n_jobs is None else effective_n_jobs(n_jobs)
    budget = as_bytes(estimator.memory_budget)
    return count if budget is None else max(min(count, int(budget / BUDGET_OF_A_THREAD)), 1)
