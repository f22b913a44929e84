"""The functions that a row becomes: the wrapper itself, which needs no frame of its own, and what
it jumps to. Kinds that must do something in every mode are one function."""
import dataclasses

import templates

_SPANS = {"count", "span"}
_IN_EVERY_MODE = {"create", "create_group", "create_inter", "create_world", "start_create"}
_IN_EVERY_MODE |= {"name_communicator", "free_communicator"}
_IN_EVERY_MODE |= {"cross_request", "create_window", "name_window", "free_window", "open_epoch"}
_IN_EVERY_MODE |= {"open_file", "close_file", "set_view", *templates.PREPARES}

_PLAN = """\
  const uint32_t plan = plan_call(kSite{name});
"""
_PLAN_LOOKING = """\
  const uint32_t plan = plan_call(kSite{name}, kUntimed);
"""
_TO_RECORD = """\
  if (AON_LIKELY(is_in_full(kSite{name}))) return record_{name}({all});
  return plan_{name}({all});
"""
_TO_LOOK = """\
  if (AON_LIKELY(plan == kUntimed)) return look_{name}({all});
"""
_FORWARD = """\
  const auto real = reinterpret_cast<Real{name}>(known_function(kFunction{name}));
  if (AON_LIKELY(plan == kForward && real != nullptr)) return real({all});
"""
_TO_REAL = (
    _FORWARD
    + """\
  return start_{name}({all_and}plan);
"""
)
# Where no weight is told, all are jumps: the frame of the call is the caller's in every case, and
# a longjmp out of it leaves a return address that the caller's next call overwrites.
_TO_START = (
    _FORWARD
    + """\
  if (plan != kFirstPlan && real != nullptr) return record_{name}({all});
  return start_{name}({all});
"""
)

_REAL = """\
  const auto real = reinterpret_cast<Real{name}>(real_function(kFunction{name}));
"""
# Where a call is counted, the site's first one has found the function.
_KNOWN = """\
  const auto real = reinterpret_cast<Real{name}>(known_function(kFunction{name}));
"""
# A site's first call comes here, so none of a library that is not known gets any further.
# One inside another call goes there as well, which says what it is.
_START = """\
  if (AON_UNLIKELY(!library_is_known())) return real({all});
  Writer* w = writer();
  const uint32_t weight = start_plan(w, kSite{name}, kFirstPlan);
  if (weight != kForward || is_inside_call(w)) return record_{name}({all});
  return real({all});
"""
_START_WEIGHED = """\
  if (AON_UNLIKELY(!library_is_known())) return real({all});
  Writer* w = writer();
  const uint32_t weight = start_plan(w, kSite{name}, plan);
  if (weight != kForward) return weigh_{name}({all_and}weight);
  return real({all});
"""
_START_LOOKING = """\
  if (AON_UNLIKELY(!library_is_known())) return real({all});
  Writer* w = writer();
  const uint32_t weight = start_plan(w, kSite{name}, plan, kUntimed);
  if (weight == kUntimed) return look_{name}({all});
  if (weight != kForward) return weigh_{name}({all_and}weight);
  return real({all});
"""
# Of a call that may complete a request: while paused, too (completion.h).
_FORWARD_UNLESS_PASSING = _FORWARD.replace("kForward &&", "kForward && !is_passing_requests() &&")
_RECORD_UNLESS_PASSING = _TO_START.removeprefix(_FORWARD).replace(
    "plan != kFirstPlan &&", "plan != kFirstPlan && plan != kForward &&"
)
_PASS = """\
  if (is_passing_requests()) return pass_{name}({all});
  return real({all});
"""
_PASS_NONE = "  return real({all});\n"
_RECORD_WEIGHED = """\
  return weigh_{name}({all_and}1);
"""


@dataclasses.dataclass
class Piece:
    """One function: what stands before the MPI function's name ("": it has that name itself), the
    body behind `real` (or of the wrapper, whole), and a last parameter behind the MPI function's
    own."""

    prefix: str
    body: str
    extra: str = ""
    attributes: str = "[[gnu::noinline]]"


def _wrapper(body):
    return Piece("", body, attributes="AON_EXPORT")


def _passing(body):
    """The body of a wrapper or of what it starts, of a call that may complete a request."""
    body = body.replace(_TO_START.removeprefix(_FORWARD), _RECORD_UNLESS_PASSING)
    body = body.replace(_FORWARD, _FORWARD_UNLESS_PASSING)
    return body.removesuffix(_PASS_NONE) + _PASS if body.endswith(_PASS_NONE) else body


def _with_pass(function, helpers, wrapper):
    """The same pieces, and what they do while the recording is paused."""
    if function.kind not in templates.PASSED:
        return helpers, wrapper
    for piece in helpers:
        if piece.prefix in ("start_", "plan_"):
            piece.body = _passing(piece.body)
    return [Piece("pass_", _REAL + templates.pass_body(function)), *helpers], _passing(wrapper)


def _helpers_and_wrapper(function):
    recorded = _REAL + templates.body(function)
    if function.kind in _IN_EVERY_MODE:
        return [], recorded
    if function.kind in _SPANS:
        weigh = Piece("weigh_", recorded, "weight")
        return [weigh, Piece("start_", _REAL + _START_WEIGHED, "plan")], _PLAN + _TO_REAL
    if function.kind not in templates.FINDS:
        record = Piece("record_", recorded)
        start = Piece("start_", _REAL + _START)
        return [record, start, Piece("plan_", _PLAN + _TO_START)], _TO_RECORD
    looks = [Piece("look_", templates.look_body(function).replace("{known}", _KNOWN))]
    if many := templates.look_many_body(function):
        looks.insert(0, Piece("look_many_", many.replace("{known}", _KNOWN)))
    start = Piece("start_", _REAL + _START_LOOKING, "plan")
    if function.kind in templates.POLLS:
        weigh = Piece("weigh_", recorded, "weight")
        return [weigh, *looks, start], _PLAN_LOOKING + _TO_LOOK + _TO_REAL
    weigh = Piece("weigh_", recorded, "weight", "[[gnu::always_inline]] inline")
    record = Piece("record_", _RECORD_WEIGHED)
    plan = Piece("plan_", _PLAN_LOOKING + _TO_REAL)
    return [weigh, record, *looks, start, plan], _TO_RECORD


def pieces(function):
    """The functions of one row in the order of their definition, the wrapper last."""
    parts = templates.Parts(function)
    helpers, body = _with_pass(function, *_helpers_and_wrapper(function))
    result = [*helpers, _wrapper(body)]
    for piece in result:
        piece.body = piece.body.format_map(parts)
    return result
