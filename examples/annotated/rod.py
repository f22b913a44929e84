"""rod: heat in a rod, annotated in Python; see rod.c.

Run:  PYTHONPATH=$(aon --python-path) aon-run python3 rod.py
"""
import aon

CELLS = 1000
STEPS = 20


@aon.region("halo")
def exchange_ends(rod):
    rod[0] = rod[CELLS]
    rod[CELLS + 1] = rod[1]


def advance(rod):
    """The new temperatures and the sum of squared changes."""
    exchange_ends(rod)
    with aon.region("compute"):
        new = [0.25 * (rod[i - 1] + 2.0 * rod[i] + rod[i + 1]) for i in range(1, CELLS + 1)]
    with aon.region("residual"):
        change = sum((b - a) ** 2 for a, b in zip(rod[1:], new))
    return [0.0, *new, 0.0], change


def main():
    with aon.region("setup"):
        rod = [0.0] + [100.0] * (CELLS // 2) + [0.0] * (CELLS // 2) + [0.0]
    residual = aon.counter("residual", "K^2")
    change = 0.0
    for _ in aon.steps(range(STEPS)):
        rod, change = advance(rod)
        residual.set(change)
    aon.mark("done", STEPS)
    print(f"rod: {STEPS} steps, residual {change:.6e}")


if __name__ == "__main__":
    main()
