"""What counters of a GPU must say while it is idle, copies, gets data from the host and multiplies
matrices (gpu_busy): between which values the mean of each series lies."""
import math

PLAN = ("idle:5", "copy:5", "transfer:5", "matrix:5")
PHASES = ("idle", "copy", "transfer", "matrix")
BLACKWELL = 100  # has no metrics of PCIe for PM sampling
RATE_MAX = math.inf

# (series, phase, least, most). mma.sync reaches a part of what Hopper's own instructions do.
RULES = (
    ("sm-active", "idle", 0, 0.1),
    ("sm-active", "transfer", 0, 0.3),
    ("sm-active", "matrix", 0.8, 1.01),
    ("tensor-active", "idle", 0, 0.02),
    ("tensor-active", "copy", 0, 0.05),
    ("tensor-active", "transfer", 0, 0.02),
    ("tensor-active", "matrix", 0.3, 1.01),
    ("pcie-received-rate", "idle", 0, 5e8),
    ("pcie-received-rate", "copy", 0, 5e8),
    ("pcie-received-rate", "transfer", 2e9, RATE_MAX),
    ("pcie-received-rate", "matrix", 0, 5e8),
)
GPM_RULES = (*RULES, ("dram-active", "idle", 0, 0.05), ("dram-active", "copy", 0.3, 1.01),
             ("dram-active", "transfer", 0, 0.3), ("dram-active", "matrix", 0, 0.1))  # fmt: skip
PM_RULES = RULES + tuple(
    (f"dram-{way}-active", phase, least, most)
    for way in ("read", "write")
    for phase, least, most in (("idle", 0, 0.05), ("copy", 0.15, 1.01), ("matrix", 0, 0.1))
)


def rules_of(group, capability):
    """Those for a group of series (gpm, counters) of a GPU."""
    if group == "gpm":
        return GPM_RULES
    if capability < BLACKWELL:
        return PM_RULES
    return tuple(rule for rule in PM_RULES if not rule[0].startswith("pcie-"))


def broken(rules, means):
    """Those that do not hold, as text. `means`: {(series, phase): value}."""
    texts = []
    for series, phase, least, most in rules:
        value = means.get((series, phase))
        if value is None or not least <= value <= most:
            is_there = "not there" if value is None else f"{value:.4g}"
            texts.append(f"{series} in {phase}: {is_there}, must be {least:g} to {most:g}")
    return texts
