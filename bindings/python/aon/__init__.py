"""Annotations of Python programs: regions, steps, marks and counters.

    with aon.region("halo"):
        ...

    @aon.region("solve")
    def solve(): ...

    for i in aon.steps(range(100)):      # or: with aon.step(i): ...
        residual.set(1e-3)               # residual = aon.counter("residual", "K")
        aon.mark("converged", 17)

    with aon.gpu_paused():               # CUPTI is another profiler's (aon-run --cupti-mode yield)
        ...

Recorded when the program runs under aon-run; otherwise nothing happens. Regions belong to the
thread that enters them; a coroutine must leave one before it awaits. The decorator does that for
generators and coroutines: they are in their region each time that they go on.
"""
import contextlib
import functools
import itertools

try:
    from aon import _aon as _implementation
except ImportError:  # built for another machine, or not built
    from aon import _fallback as _implementation

__all__ = ["region", "step", "steps", "mark", "counter", "is_present", "gpu_pause",
           "gpu_resume", "gpu_paused"]

region = _implementation.region
_Step = _implementation.Step
_numbers = itertools.count()


# As `inspect` has them, which takes longer to import than all of this.
_GENERATOR, _COROUTINE, _ITERABLE_COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200


def _resumed(entered, function):
    """A generator function: what `function` returns, in the region `entered` each time that it goes
    on. It holds nothing that was yielded, nor an exception, whose frames hold all of theirs."""

    def resumed(*args, **kwargs):
        inner = function(*args, **kwargs)
        go_on, value, items = inner.send, None, []
        while True:
            with entered:
                try:
                    items.append(go_on(value))
                except StopIteration as end:
                    return end.value
                finally:
                    value = None
            try:
                go_on, value = inner.send, (yield items.pop())
            except GeneratorExit:
                with entered:
                    inner.close()
                raise
            except BaseException as error:
                go_on, value = inner.throw, error

    return resumed


class _Awaited:
    def __init__(self, resumed):
        self._resumed = resumed

    def __await__(self):
        return self._resumed


def _decorate(entered, function):
    """`function` in the region `entered`, of the same kind: while it waits another one may run."""
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    if flags & (_ASYNC_GENERATOR | _ITERABLE_COROUTINE):
        return function
    if flags & _COROUTINE:
        resumed = _resumed(entered, function)

        async def call(*args, **kwargs):
            return await _Awaited(resumed(*args, **kwargs))

    elif flags & _GENERATOR:
        call = _resumed(entered, function)
    else:

        def call(*args, **kwargs):
            with entered:
                return function(*args, **kwargs)

    return functools.wraps(function)(call)


_implementation.set_decorator(_decorate)


def is_present():
    """Whether AON records, or could, in this process."""
    return bool(_implementation.is_present())


def step(number=None):
    """One iteration of the program, `with aon.step(i):`. Without a number they count from 0."""
    return _Step(next(_numbers) if number is None else number)


def steps(iterable, first=0):
    """Yields the items, each in a step of its own: `for item in aon.steps(items):`."""
    for number, item in enumerate(iterable, first):
        with _Step(number):
            yield item


def mark(name, value=None):
    """Something happened now, perhaps with a value: an integer (beyond 64 bits it is recorded as a
    real number) or a float."""
    _implementation.mark(name, value)


@functools.lru_cache(maxsize=8192)
def counter(name, unit=""):
    """The counter of this name and unit; `counter(...).set(value)` gives it a value."""
    return _implementation.Counter(name, unit)


def gpu_pause():
    """Gives CUPTI to another profiler of this process, such as torch.profiler. True: it is free;
    False: nothing is changed, for it takes `aon-run --cupti-mode yield` and CUDA in use. Waits for
    AON's last records, 2 s at most; other threads run meanwhile. See aon/gpu.h."""
    return bool(_implementation.gpu_pause())


def gpu_resume():
    """Takes CUPTI back. True: the GPU's work is recorded again."""
    return bool(_implementation.gpu_resume())


@contextlib.contextmanager
def gpu_paused():
    """`with aon.gpu_paused() as is_free:` leaves CUPTI to another profiler for the block. Where it
    is not free the block runs all the same, recorded. Blocks do not nest: the first end takes it
    back."""
    is_free = gpu_pause()
    try:
        yield is_free
    finally:
        if is_free:
            gpu_resume()
