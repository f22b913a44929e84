"""What is recorded of calls that look whether something has come or is complete: probes, waits and
tests. All other kinds are in templates.py."""
import file_templates

# Calls that look for something: `prepare`, then whether it was `found`, then what to do `then`.
_FIND = (
    file_templates.ENTER
    + """\
{prepare}\
  OpenCall call = begin_call(w, kSite{name}.id);
  const int result = real({real_arguments});
  [[maybe_unused]] const uint64_t now = ticks(w);
  if (result != kSuccess || ({found})) {{{then}}}
  finish_span_at(call, now, {flags}, weight);
  return result;
"""
)

# Of one request: what it ends with is told with the call.
_FIND_ONE = _FIND.replace(
    """\
  if (result != kSuccess || ({found})) {{{then}}}
  finish_span_at(call, now, {flags}, weight);
""",
    """\
  if (AON_LIKELY(result != kSuccess || ({found}))) {{
    waiting.finish(call, now, result, weight);
  }} else {{
    finish_span_at(call, now, {flags}, weight);
  }}
""",
)

# What the call answers by (`early`) is only needed after it, and found where the call put it. All
# else that depends on what it found is left to record_found(), which is no part of this function:
# it has few registers to save for the calls that find nothing.
_LOOK = """\
{prepare}{early}{known}\
  const int result = real({real_arguments});
{late}\
  if (AON_LIKELY(result == kSuccess && !({hint}))) return result;
  return record_found(
      kSite{name}, result, [={captured}] {{ return {found}; }}, [=] {{ return {flags}; }},
      [={captured}]([[maybe_unused]] Writer* w, [[maybe_unused]] uint64_t now) {{{then}}});
"""
# Of one request, which is what programs poll most, less has to be kept.
_LOOK_ONE = _LOOK.replace("{prepare}", """\
  if ({count} != 1) return look_many_{name}({all_of_look});
  OwnStatus own;
  WaitOne waiting({requests}, {status}, &own);
""").replace("{real_arguments}", "{with_waiting_status}").replace(
    "{then}", " if (value_or({index}, -1) == 0) waiting.complete(w, now, result); "
)

# While paused: requests that have ended are known no more, those that are started go on.
_PASS = """\
{prepare}\
  const int result = real({real_arguments});
  [[maybe_unused]] Writer* const w = nullptr;
  [[maybe_unused]] constexpr uint64_t now = 0;
  if (result != kSuccess || ({found})) {{{then}}}
  return result;
"""
_PASS_OTHERS = {
    "free_request": """\
  free_request(nullptr, handle_at({request}, abi.request_null));
  return real({all});
""",
    "start": """\
  const Handle given = handle_at({request}, abi.request_null);
  const int result = real({all});
  follow_start(given, {request}, 0);
  return result;
""",
    "start_all": """\
  const WaitMany given({count}, {requests}, 1, abi.status_ignore);
  const int result = real({all});
  given.follow_starts();
  return result;
""",
    "end_split": """\
  forget_split(find_file({fh}));
  return real({all});
""",
    **dict.fromkeys(
        ("matched_receive", "start_matched_receive"),
        """\
  matched(nullptr, {message});
  return real({all});
""",
    ),
}

_ONE = "  OwnStatus own;\n  WaitOne waiting({request}, {status}, &own);\n"
_ANY = "  WaitMany waiting({count}, {requests}, 1, {status});\n"
_STATUS = """\
  OwnStatus own;
  Status* told = {status} == abi.status_ignore ? own.get() : {status};
"""
_ALL = "  WaitMany waiting({count}, {requests}, {count} > 1 ? {count} : 2, {statuses});\n"

_FINDS = {
    "poll": ("", "", "*{flag} != 0", ""),
    "matched_poll": (
        "",
        "",
        "*{flag} != 0",
        " if (result == kSuccess) remember_message(w, {message}, {comm}); ",
    ),
    "poll_request": (
        _STATUS,
        "told",
        "*{flag} != 0 && is_untold({request})",
        " note_status({request}, told, result); ",
    ),
    "wait": (_ONE, "status", "true", " waiting.complete(w, now, result); "),
    "test": (
        _ONE,
        "status",
        "*{flag} != 0 && waiting.is_active()",
        " waiting.complete(w, now, result); ",
    ),
    "wait_any": (
        _ANY,
        "statuses",
        "*{index} != abi.undefined",
        " waiting.complete_any(w, now, value_or({index}, -1), result); ",
    ),
    "test_any": (
        _ANY,
        "statuses",
        "*{flag} != 0 && *{index} != abi.undefined",
        " waiting.complete_any(w, now, value_or({index}, -1), result); ",
    ),
    "wait_all": (_ALL, "statuses", "true", " waiting.complete_all(w, now, result); "),
    "test_all": (
        _ALL,
        "statuses",
        "*{flag} != 0 && waiting.is_active()",
        " waiting.complete_all(w, now, result); ",
    ),
    "wait_some": (
        _ALL,
        "statuses",
        "true",
        " waiting.complete_some(w, now, value_or({outcount}, 0), {indices}, {first_index},"
        " result); ",
    ),
    "test_some": (
        _ALL,
        "statuses",
        "*{outcount} != 0 && *{outcount} != abi.undefined",
        " waiting.complete_some(w, now, value_or({outcount}, 0), {indices}, {first_index},"
        " result); ",
    ),
}
KINDS = set(_FINDS)
PASSED = KINDS - {"poll", "matched_poll", "poll_request"} | set(_PASS_OTHERS)
POLLS = {"poll", "matched_poll", "poll_request", "test", "test_any", "test_all", "test_some"}
_ARGUMENTS = {"": "{all}", "told": "{with_status}"}
_FLAGS = {"matched_poll": "probe_flags(result, {message}, {flag})"}


def _find(template, function):
    prepare, replaced, found, then = _FINDS[function.kind]
    real_arguments = _ARGUMENTS.get(replaced, "{with_waiting_%s}" % replaced)
    template = template.replace("{prepare}", prepare).replace("{found}", found)
    template = template.replace("{then}", then).replace("{real_arguments}", real_arguments)
    template = template.replace("{flags}", _FLAGS.get(function.kind, "failed(result)"))
    answers = [name for name in ("flag", "index", "outcount") if "*{%s}" % name in found]
    early = "".join("  Late late_%s({%s});\n" % (name, name) for name in answers)
    late = "".join("  {%s} = late_%s.get();\n" % (name, name) for name in answers)
    template = template.replace("{early}", early).replace("{late}", late)
    template = template.replace("{hint}", found.split(" && ")[0])
    return template.replace("{captured}", ", &waiting" if "waiting" in prepare else "")


def body(function):
    """Template for a call that is recorded."""
    return _find(_FIND_ONE if function.kind in ("wait", "test") else _FIND, function)


def look_body(function):
    """Template for a call that is not timed: it is recorded if it found something."""
    return _find(_LOOK_ONE if function.kind == "test_any" else _LOOK, function)


def look_many_body(function):
    """What the body above leaves to a function of its own; None: nothing."""
    return _find(_LOOK, function) if function.kind == "test_any" else None


def pass_body(function):
    """Template for a call while paused, as long as requests live that were recorded."""
    return _PASS_OTHERS.get(function.kind) or _find(_PASS, function)
