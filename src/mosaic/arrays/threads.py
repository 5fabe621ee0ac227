"""Threads of one machine: blocks of rows are computed in several threads, with one thread of the linear algebra library each.

Blocks are the same for any number of threads, and every block writes its result to a place of its own, so the answer does
not depend on the number. Threads of linear algebra libraries cost more than they save on small matrices.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Part = TypeVar("Part")
Result = TypeVar("Result")

#: Threads of the current work; None where nothing was said: then there is one, and the library's own threads are left alone.
_threads: ContextVar[int | None] = ContextVar("mosaic_threads", default=None)
_lock = threading.Lock()
#: Threads of each library before they were limited; empty while they are not.
_before: list[int] = []
#: Seconds that a part of each function took when it was last called.
_seconds: dict[Any, float] = {}
_limited = 0


@contextmanager
def using_threads(count: int | None = None) -> Iterator[None]:
    """Compute blocks of rows in ``count`` threads; by default in as many as the linear algebra library would use. Inside another
    such block, the number of the outer one stays.
    """
    if _threads.get() is not None:
        yield
        return
    token = _threads.set(available_threads() if count is None else count)
    try:
        with one_thread():
            yield
    finally:
        _threads.reset(token)


def available_threads() -> int:
    """Threads that the linear algebra library would use, but no more than cores that this process may use."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    with _lock:
        own = _before or [library.num_threads for library in _libraries()]
    return max(min([cores, *own]), 1)


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra libraries with one thread, for the whole process, until the last caller has left."""
    global _limited
    with _lock:
        _limited += 1
        if _limited == 1:
            _before.extend([library.num_threads for library in _libraries()])
            _limit([1] * len(_before))
    try:
        yield
    finally:
        with _lock:
            _limited -= 1
            if _limited == 0:
                _limit(_before)
                _before.clear()


def _limit(numbers: list[int]) -> None:
    """Set the threads of each library. From version 3.8 on, threadpoolctl lets only that thread change a limit which set one,
    until it has been told to forget that thread; limits of ours begin in one thread and end in another.
    """
    for library, number in zip(_libraries(), numbers, strict=True):
        forget = getattr(library, "clear_controlling_thread", lambda force: None)
        forget(force=True)
        library.set_num_threads(number)
        forget(force=True)


def thread_map(function: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """What the function returns for every part, in their order; it is called in the threads of ``using_threads``."""
    threads = _threads.get()
    if threads is None:
        with one_thread():
            return list(map(function, parts))
    if threads == 1 or len(parts) < 2:
        return list(map(function, parts))
    found: list[Result] = []
    code = getattr(function, "__code__", None)
    started = time.perf_counter()
    if code not in _seconds:  # how long does a part take?
        found.append(function(parts[0]))
        _seconds[code] = time.perf_counter() - started
    rest = parts[len(found) :]
    started = time.perf_counter()
    # Less is not worth waking others for.
    busy = threads if _seconds[code] * len(rest) >= 2e-3 else 1
    found.extend(thread_imap(function, rest, busy))
    _seconds[code] = (time.perf_counter() - started) * busy / len(rest)
    return found


def thread_imap(
    function: Callable[[Part], Result], parts: Iterable[Part], most: int | None = None
) -> Iterator[Result]:
    """The same, one by one, in ``most`` threads at most; one part for each thread and one more are held at a time."""
    threads = min(_threads.get() or 1, most or sys.maxsize)
    if threads == 1:
        yield from map(function, parts)
        return

    def work(part: Part) -> Result:
        _threads.set(1)  # parts of parts are not divided again
        return function(part)

    waiting: deque[Future[Result]] = deque()
    try:
        for part in parts:
            # A thread knows nothing of its caller's context, such as how NumPy treats overflow, unless it is given a copy.
            waiting.append(_pool(threads).submit(copy_context().run, work, part))
            del part  # it is held no longer than the work on it
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for late in waiting:
            late.cancel()
        wait(waiting)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="mosaic")


@cache
def _libraries() -> list[Any]:
    """The linear algebra libraries of NumPy and SciPy; the search takes milliseconds."""
    import scipy.linalg  # noqa: F401  (it loads them)

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _begin_anew() -> None:
    """Threads do not survive a fork, and a lock that one of them held would stay locked."""
    global _lock
    _lock = threading.Lock()
    _pool.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
