"""What a fit does while it runs: it tells how far it is, computes in threads, and if it fails leaves the model as it was."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import isfunction
from typing import Any, TypeAlias, TypeVar

from joblib import effective_n_jobs
from sklearn.base import BaseEstimator

from mosaic.arrays.threads import available_threads, using_threads
from mosaic.arrays.xp import work_on_devices
from mosaic.parameters import as_bytes, check_jobs

try:
    from sklearn import callback
except ImportError:  # before 1.9
    callback = None
Callbacks: Any = object if callback is None else callback.CallbackSupportMixin

#: Called with the stage of a fit, a text about it, and the share of it that is done, if known.
Listener: TypeAlias = Callable[[str, str, float | None], None]
Say: TypeAlias = Callable[..., None]
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)

Estimator = TypeVar("Estimator", bound=type[Any])
Fit = TypeVar("Fit", bound=Callable[..., Any])


def reporting(fit: Fit) -> Fit:
    """A fit whose stages are tasks for the callbacks of scikit-learn, where its version has them."""
    reported: Fit = fit if callback is None else callback.with_callbacks(fit)
    return reported


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """A context in which fits report their progress to the listener; ``verbose`` writes nothing."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


@contextmanager
def telling(estimator: BaseEstimator, *, has_tasks: bool = True) -> Iterator[Say]:
    """Yields what reports the progress of a fit to a listener or, if ``verbose``, on stderr, and its stages as tasks to callbacks
    of scikit-learn. An error leaves all as it was.
    """
    listener = _LISTENER.get()
    tasks = []
    if has_tasks and hasattr(estimator, "set_callbacks"):
        tasks.append(estimator._init_callback_context(max_subtasks=None))
        tasks[0].call_on_fit_task_begin(estimator=estimator)
    stage_before = ""
    started = time.monotonic()
    before = dict(estimator.__dict__)
    written = started

    def say(stage: str, text: str | None = None, share: float | None = None) -> None:
        nonlocal stage_before, written
        now = time.monotonic()
        is_new = stage != stage_before
        stage_before = stage
        if tasks and is_new and stage != "done":
            for task in tasks[1:]:
                tasks.remove(task)
                task.call_on_fit_task_end(estimator=estimator)
            tasks.append(tasks[0].subcontext(stage))
            tasks[1].call_on_fit_task_begin(estimator=estimator)
        if listener is not None:
            listener(stage, text or stage, share)
        elif estimator.verbose and (is_new or now - written >= 5.0):
            written = now
            sys.stderr.write(
                f"[{type(estimator).__name__}] {now - started:5.1f} s  {text or stage}\n"
            )
            sys.stderr.flush()

    try:
        yield say
        for task in reversed(tasks):
            task.call_on_fit_task_end(estimator=estimator)
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def computing_in_threads(estimator: Estimator) -> Estimator:
    """Its methods compute in the threads that ``n_jobs`` and budget allow; the linear algebra library has one meanwhile."""
    for name, member in list(vars(estimator).items()):
        if name.startswith("_"):
            continue
        computes = type(member) is property  # what is ``Known`` computes nothing
        if computes and member.fget is not None:
            setattr(estimator, name, property(_in_threads(member.fget)))
        elif isfunction(member):
            setattr(estimator, name, _in_threads(member))
    return estimator


def _in_threads(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def run(self: BaseEstimator, *args: object, **kwargs: object) -> Any:
        with work_on_devices(), using_threads(threads_of(self)):
            return method(self, *args, **kwargs)

    return run


def threads_of(estimator: BaseEstimator) -> int:
    """As many as ``n_jobs`` says, one for each 100 MB of a budget: the blocks of a thread, 10 MB, are a tenth of it."""
    n_jobs = check_jobs(estimator.n_jobs)
    count = available_threads() if n_jobs is None else effective_n_jobs(n_jobs)
    budget = as_bytes(estimator.memory_budget)
    return count if budget is None else max(min(count, int(budget / 1e8)), 1)
