"""Threads of one machine: blocks of rows are computed in several threads, with one thread of the linear algebra library each.

Blocks are the same for any number of threads, and every block writes its result to a place of its own, so the answer does
not depend on the number. Linear algebra libraries have threads of their own, which cost more than they save on small matrices,
and much more where other programs are busy; inside ``using_threads`` they have one.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Part = TypeVar("Part")

#: Threads of the current work; None where nothing was said: then there is one, and the library's own threads are left alone.
_threads: ContextVar[int | None] = ContextVar("mosaic_threads", default=None)
_lock = threading.Lock()
_limits: list[Any] = []
_limited = 0


@contextmanager
def using_threads(count: int | None = None) -> Iterator[None]:
    """Compute blocks of rows in ``count`` threads; by default in as many as the linear algebra library would use.

    Inside another such block, the number of the outer one stays.
    """
    if _threads.get() is not None:
        yield
        return
    number = available_threads() if count is None else count
    token = _threads.set(number)
    try:
        with one_thread():
            yield
    finally:
        _threads.reset(token)


def available_threads() -> int:
    """Threads that the linear algebra library would use, but no more than cores that this process may use."""
    own = [int(library["num_threads"]) for library in _libraries().info() if library["user_api"] == "blas"]
    return max(min([cores(), *own]), 1)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra libraries with one thread, for the whole process, until the last caller has left."""
    global _limited
    with _lock:
        _limited += 1
        if _limited == 1:
            _limits.append(_libraries().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            _limited -= 1
            if _limited == 0:
                _limits.pop().restore_original_limits()


def each(function: Callable[[Part], object], parts: Iterable[Part]) -> None:
    """Call the function for every part, in the threads of ``using_threads``. Calls must not depend on one another.

    Examples
    --------
    >>> squares = [0] * 4
    >>> with using_threads(2):
    ...     each(lambda i: squares.__setitem__(i, i * i), range(4))
    >>> squares
    [0, 1, 4, 9]
    """
    left = deque(parts)
    helpers = min(_threads.get() or 1, len(left)) - 1

    def work() -> None:
        _threads.set(1)  # parts of parts are not divided again
        while True:
            try:
                part = left.popleft()
            except IndexError:
                return
            try:
                function(part)
            except BaseException:
                left.clear()
                raise

    if helpers <= 0:
        for part in left:
            function(part)
        return
    pool = _pool(helpers)
    # A thread knows nothing of its caller's context, such as how NumPy treats overflow, unless it is given a copy.
    started = [pool.submit(copy_context().run, work) for _ in range(helpers)]
    try:
        copy_context().run(work)
    finally:
        wait(started)
    for helper in started:
        helper.result()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="mosaic")


@cache
def _libraries() -> ThreadpoolController:
    """The loaded linear algebra libraries. The search takes milliseconds, so the result is kept."""
    return ThreadpoolController()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork
