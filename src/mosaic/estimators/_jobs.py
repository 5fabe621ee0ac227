"""Methods of estimators that compute in ``n_jobs`` threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from joblib import effective_n_jobs

from mosaic._checks import as_bytes, check_jobs
from mosaic._devices import work_on_devices
from mosaic._threads import available_threads, using_threads

#: Bytes of a memory budget for every thread: its temporary blocks, about 10 MB, then take at most a tenth of the budget.
BUDGET_OF_A_THREAD = 1e8

Method = TypeVar("Method", bound=Callable[..., Any])


def in_threads(method: Method) -> Method:
    """The method, computed in the threads that the estimator's ``n_jobs`` and budget allow; see ``mosaic._threads``."""

    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with work_on_devices(), using_threads(threads_of(self)):
            return method(self, *args, **kwargs)

    return cast(Method, run)


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
