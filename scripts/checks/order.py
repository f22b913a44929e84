"""Memory order: every acquire and release says which one it pairs with, and both ends exist.

    slot.committed.store(bytes, std::memory_order_release);  // pairs with ring:commit
    slot.committed.load(std::memory_order_acquire);          // pairs with ring:commit

The tag stands in the statement or on the line before it; `a|b` pairs with two. seq_cst needs
`// seq_cst: reason`; stand-alone fences are refused: ThreadSanitizer does not see them.
"""
import collections
import re

from common import Finding, blank_comments

_ORDER = re.compile(
    r"memory_order(?:_|::)(acquire|release|acq_rel|seq_cst)"
    r"|__ATOMIC_(ACQUIRE|RELEASE|ACQ_REL|SEQ_CST)"
)
_TAG = re.compile(r"pairs with ([\w:|-]+)")
_BARE = re.compile(r"\.(load\(\s*\)|exchange\([^,()]*\)|fetch_\w+\([^,()]*\))")
_FENCE = re.compile(r"\batomic_thread_fence\b|\b__sync_synchronize\b")
_FOLDERS = ("core/", "plugins/", "launcher/")


def _near(lines, index):
    """The statement around line `index` and the line before it, comments included. A statement ends
    with the line that holds its semicolon; eight lines are enough for any of ours."""
    first = index
    while first > 0 and index - first < 8 and not re.search(r"[;{}]\s*(//.*)?$", lines[first - 1]):
        first -= 1
    last = index
    while (
        last + 1 < len(lines)
        and last - index < 8
        and not re.search(r"[;{}]\s*(//.*)?$", lines[last])
    ):
        last += 1
    before = lines[first - 1] if first > 0 and lines[first - 1].lstrip().startswith("//") else ""
    return "\n".join([before] + lines[first : last + 1])


def _orders(line):
    return {(a or b).lower() for a, b in _ORDER.findall(line)}


def check(sources, exceptions):
    ends = collections.defaultdict(dict)  # tag -> {"acquire" or "release": Finding-like place}
    for source in sources:
        if not source.is_c or not source.path.startswith(_FOLDERS):
            continue
        code_lines = blank_comments(source.text).split("\n")
        for index, code in enumerate(code_lines):
            place = (source.path, index + 1)
            if _FENCE.search(code):
                yield Finding(*place, "stand-alone fence: use an ordered access")
            yield from _check_line(place, code, _near(source.lines, index), ends)
    for tag, sides in sorted(ends.items()):
        for side, other in (("acquire", "release"), ("release", "acquire")):
            if side in sides and other not in sides and ("order", tag) not in exceptions:
                yield Finding(
                    *sides[side], f"'pairs with {tag}': this {side} has no {other} with that tag"
                )


def _check_line(place, code, near, ends):
    if _BARE.search(code) and "atomic" in near and "seq_cst:" not in near:
        yield Finding(*place, "name the memory order")
    orders = _orders(code)
    if "seq_cst" in orders and "seq_cst:" not in near:
        yield Finding(*place, "seq_cst without '// seq_cst: reason'")
    orders.discard("seq_cst")
    if not orders:
        return
    tags = [t for found in _TAG.findall(near) for t in found.split("|")]
    if not tags:
        yield Finding(*place, f"{'/'.join(sorted(orders))} without '// pairs with TAG'")
    for tag in tags:
        for order in orders:
            for side in ("acquire", "release") if order == "acq_rel" else (order,):
                ends[tag].setdefault(side, place)
