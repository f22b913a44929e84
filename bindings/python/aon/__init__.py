"""Annotations of Python programs: regions, steps, marks and counters.

    with aon.region("halo"):
        ...

    @aon.region("solve")
    def solve(): ...

    for i in aon.steps(range(100)):      # or: with aon.step(i): ...
        residual.set(1e-3)               # residual = aon.counter("residual", "K")
        aon.mark("converged", 17)

Recorded when the program runs under aon-run; otherwise nothing happens. Regions belong to the
thread that enters them; a coroutine must leave one before it awaits.
"""
import functools
import itertools

try:
    from aon import _aon as _implementation
except ImportError:  # built for another machine, or not built
    from aon import _fallback as _implementation

__all__ = ["region", "step", "steps", "mark", "counter", "is_present"]

region = _implementation.region
_Step = _implementation.Step
_numbers = itertools.count()


def _decorate(entered, function):
    """`function` in the region `entered`."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        with entered:
            return function(*args, **kwargs)

    return call


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
    """Something happened now, perhaps with a value (an integer or a float)."""
    _implementation.mark(name, value)


@functools.lru_cache(maxsize=None)
def counter(name, unit=""):
    """The counter of this name and unit; `counter(...).set(value)` gives it a value."""
    return _implementation.Counter(name, unit)
