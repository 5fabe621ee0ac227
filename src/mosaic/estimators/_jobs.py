"""Methods of estimators that compute in ``n_jobs`` threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from joblib import effective_n_jobs

from mosaic._checks import check_jobs
from mosaic._devices import work_on_devices
from mosaic._threads import using_threads

Method = TypeVar("Method", bound=Callable[..., Any])


def in_threads(method: Method) -> Method:
    """The method, computed in the threads that the estimator's ``n_jobs`` allows; see ``mosaic._threads``."""

    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        n_jobs = check_jobs(getattr(self, "n_jobs", None))
        with work_on_devices(), using_threads(None if n_jobs is None else effective_n_jobs(n_jobs)):
            return method(self, *args, **kwargs)

    return cast(Method, run)
