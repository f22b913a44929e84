"""What is recorded of a call, by kind of row (functions.table says what a kind is). A body begins
where `real` is the real function; shapes.py says from where it is entered."""

import completion_templates
import file_templates
import window_templates

# Names that the bodies use; an argument of that name is called `name_`.
LOCAL_NAMES = {"w", "weight", "real", "result", "call", "sent", "asked", "got", "own", "told"}
LOCAL_NAMES |= {"plan", "waiting", "c", "bytes", "parent", "handle", "window"}
LOCAL_NAMES |= {"made", "first", "number", "transfer", "file", "opened", "now", "given"}
LOCAL_NAMES |= {"late_flag", "late_index", "late_outcount"}

_ENTER = file_templates.ENTER

PASSED = completion_templates.PASSED
FINDS = {*completion_templates.KINDS, "poll_window"}
POLLS = {"poll_window", *completion_templates.POLLS}

# The same of a call that communicates: the program may have called it, in a callback.
_ENTER_COMMUNICATION = """\
  Writer* w = writer();
  if (AON_UNLIKELY(is_inside_call(w))) {{
    note_inside(w, kSite{name}, __builtin_return_address(0));
    return real({all});
  }}
"""

_SPAN = (
    _ENTER
    + """\
  OpenCall call = begin_call(w, kSite{name}.id);
  const auto result = real({all});
  finish_span(call, {failed}, weight);
  return result;
"""
)

_SEND = (
    _ENTER_COMMUNICATION
    + """\
  Envelope sent = outgoing({count}, {datatype}, {dest}, {tag}, {comm});
  OpenCall call = begin_message(w, kSite{name}, sent);
  const int result = real({all});
  settle(&sent, {count}, {datatype}, {dest}, {comm}, result);
  finish_blocking(call, kOutgoing, sent, result);
  return result;
"""
)

_RECEIVE = (
    _ENTER_COMMUNICATION
    + """\
  Envelope asked = incoming({source}, {tag}, {comm});
  OwnStatus own;
  Status* told = {status} == abi.status_ignore ? own.get() : {status};
  OpenCall call = begin_message(w, kSite{name}, asked);
  const int result = real({with_status});
  settle(&asked, {source}, {comm}, result);
  finish_blocking(call, kIncoming, received(asked, told, result), result);
  return result;
"""
)

_MATCHED_RECEIVE = (
    _ENTER_COMMUNICATION
    + """\
  const Envelope asked = matched(w, {message});
  OwnStatus own;
  Status* told = {status} == abi.status_ignore ? own.get() : {status};
  OpenCall call = begin_message(w, kSite{name}, asked);
  const int result = real({with_status});
  finish_blocking(call, kIncoming, received(asked, told, result), result);
  return result;
"""
)

_EXCHANGE = (
    _ENTER_COMMUNICATION
    + """\
  Envelope sent = outgoing({sendcount}, {sendtype}, {dest}, {sendtag}, {comm});
  Envelope asked = incoming({source}, {recvtag}, {comm});
  OwnStatus own;
  Status* told = {status} == abi.status_ignore ? own.get() : {status};
  OpenCall call = begin_message(w, kSite{name}, sent);
  const int result = real({with_status});
  settle(&sent, {sendcount}, {sendtype}, {dest}, {comm}, result);
  settle(&asked, {source}, {comm}, result);
  const Envelope got = received(asked, told, result);
  finish_exchange(call, failed(result), sent.communicator->id, sent.bytes, sent.peer_tag,
                  got.bytes, got.peer_tag);
  return result;
"""
)

# Followed also while the recording is paused: what is started later is recorded.
_ENTER_PREPARING = """\
  Writer* w;
  const uint32_t weight = enter(kSite{name}, w);
  if (AON_UNLIKELY(weight == 0 && !is_followed_unseen(w))) return real({all});
"""

_SEND_REQUEST = """\
  Envelope sent = outgoing({count}, {datatype}, {dest}, {tag}, {comm});
  OpenCall call = {begin}begin_message(w, kSite{name}, sent){or_none};
  const int result = real({all});
  settle(&sent, {count}, {datatype}, {dest}, {comm}, result);
  {finish}(call, RequestKind::kSend, sent, {request}, result);
  return result;
"""

_RECEIVE_REQUEST = """\
  Envelope asked = incoming({source}, {tag}, {comm});
  OpenCall call = {begin}begin_message(w, kSite{name}, asked){or_none};
  const int result = real({all});
  settle(&asked, {source}, {comm}, result);
  {finish}(call, RequestKind::kReceive, asked, {request}, result);
  return result;
"""


def _filled(body, begin, or_none, finish):
    body = body.replace("{begin}", begin).replace("{or_none}", or_none)
    return body.replace("{finish}", finish)


def _starting(body):
    return _ENTER_COMMUNICATION + _filled(body, "", "", "finish_start")


def _preparing(body):
    return _ENTER_PREPARING + _filled(body, "weight != 0 ? ", " : OpenCall{{}}", "finish_prepare")


_START_SEND = _starting(_SEND_REQUEST)
_START_RECEIVE = _starting(_RECEIVE_REQUEST)
_PREPARE_SEND = _preparing(_SEND_REQUEST)
_PREPARE_RECEIVE = _preparing(_RECEIVE_REQUEST)

_START_MATCHED_RECEIVE = (
    _ENTER_COMMUNICATION
    + """\
  const Envelope asked = matched(w, {message});
  OpenCall call = begin_message(w, kSite{name}, asked);
  const int result = real({all});
  finish_start(call, RequestKind::kReceive, asked, {request}, result);
  return result;
"""
)

_START_ONE = (
    _ENTER_COMMUNICATION
    + """\
  OpenCall call = begin_call(w, kSite{name}.id);
  const Handle given = handle_at({request}, abi.request_null);
  const int result = real({all});
  finish_start_one(call, given, {request}, result);
  return result;
"""
)

_START_ALL = (
    _ENTER_COMMUNICATION
    + """\
  OpenCall call = begin_call(w, kSite{name}.id);
  const WaitMany given({count}, {requests}, 1, abi.status_ignore);
  const uint64_t first = start_each(w, {count}, {requests});
  const int result = real({all});
  given.follow_starts();
  if (AON_UNLIKELY(result != kSuccess)) stop_each(w, {count}, {requests}, first);
  finish_span(call, failed(result));
  return result;
"""
)

_MATCHED_PROBE = (
    _ENTER
    + """\
  OpenCall call = begin_call(w, kSite{name}.id);
  const int result = real({all});
  if (result == kSuccess) remember_message(w, {message}, {comm});
  finish_span(call, probe_flags(result, {message}));
  return result;
"""
)

_CANCEL = (
    _ENTER
    + """\
  OpenCall call = begin_call(w, kSite{name}.id);
  const int result = real({all});
  if (result == kSuccess) note_cancel({request});
  finish_span(call, failed(result));
  return result;
"""
)

_CROSS_REQUEST = """\
  Writer* w;
  const uint32_t weight = enter(kSite{name}, w);
  OpenCall call;
  if (weight != 0) call = begin_call(w, kSite{name}.id);
  const auto result = real({all});
  if (weight != 0) finish_span(call, 0, weight);
  if (!is_inside_call(w)) request_crosses({in_fortran}, {in_c});
  return result;
"""

_FREE_REQUEST = (
    _ENTER
    + """\
  OpenCall call = begin_call(w, kSite{name}.id);
  free_request(w, handle_at({request}, abi.request_null));
  const int result = real({all});
  finish_span(call, failed(result));
  return result;
"""
)

# The counts of a call that MPI refuses may be no arrays.
_COLLECTIVE = (
    _ENTER_COMMUNICATION
    + """\
  Communicator* c = find_communicator({comm});
  OpenCall call = begin_call(w, kSite{name}.id, c->id);
  const int result = real({all});
  c = settled(c, {comm}, result);
  const Bytes bytes = result == kSuccess ? Traffic(c).{bytes} : Bytes{{0, 0}};
  finish_blocking_collective(call, CollectiveOperation::{operation}, *c, {root}, bytes, result);
  return result;
"""
)

_START_COLLECTIVE = (
    _ENTER_COMMUNICATION
    + """\
  Communicator* c = find_communicator({comm});
  OpenCall call = begin_call(w, kSite{name}.id, c->id);
  const int result = real({all});
  c = settled(c, {comm}, result);
  const Bytes bytes = result == kSuccess ? Traffic(c).{bytes} : Bytes{{0, 0}};
  finish_start_collective(call, CollectiveOperation::{operation}, c, {root}, bytes, {request},
                          result);
  return result;
"""
)

_PREPARE_COLLECTIVE = (
    _ENTER_PREPARING
    + """\
  Communicator* c = find_communicator({comm});
  OpenCall call = weight != 0 ? begin_call(w, kSite{name}.id) : OpenCall{{}};
  const int result = real({all});
  c = settled(c, {comm}, result);
  const Bytes bytes = result == kSuccess ? Traffic(c).{bytes} : Bytes{{0, 0}};
  finish_prepare_collective(call, CollectiveOperation::{operation}, c, {root}, bytes, {request},
                            result);
  return result;
"""
)

_START_EXCHANGE = (
    _ENTER_COMMUNICATION
    + """\
  Envelope sent = outgoing({sendcount}, {sendtype}, {dest}, {sendtag}, {comm});
  Envelope asked = incoming({source}, {recvtag}, {comm});
  OpenCall call = begin_message(w, kSite{name}, sent);
  const int result = real({all});
  settle(&sent, {sendcount}, {sendtype}, {dest}, {comm}, result);
  settle(&asked, {source}, {comm}, result);
  finish_start_exchange(call, sent, asked, {request}, result);
  return result;
"""
)

# Creations are followed also while nothing is recorded: all members must count alike.
_CREATE = """\
  Writer* w;
  const uint32_t weight = enter(kSite{name}, w);
  Communicator* parent = find_communicator({parent_handle});
  if (AON_UNLIKELY(weight == 0 && is_repeated(w, kSite{name}, parent->id))) return real({all});
  if (weight == 0) {{
    const int result = real({all});
    if (result == kSuccess) {{
      parent = settled(parent, {parent_handle}, result);
      {add};
    }}
    return result;
  }}
  OpenCall call = begin_call(w, kSite{name}.id, parent->id);
  const int result = real({all});
  parent = settled(parent, {parent_handle}, result);
  {finish}
  return result;
"""

_FINISH_CREATE = """\
finish_blocking_collective(call, CollectiveOperation::kCreateHandle, *parent, kNoRoot, {{0, 0}},
                             result);
  if (result == kSuccess) {add};"""
# Of those who meet there the parent may have others, who would be missed in the order of its
# collectives: what is made has them all. Who is none of them has met nobody. The call is over
# before we ask for its members.
_FINISH_CREATE_GROUP = """\
const uint64_t now = ticks(w);
  const Communicator* made = result == kSuccess ? {add} : parent;
  if (made == nullptr) {{
    finish_span_at(call, now, 0);
    return result;
  }}
  finish_creation_at(call, now, *made, result);"""

_START_CREATE = """\
  Writer* w;
  const uint32_t weight = enter(kSite{name}, w);
  Communicator* parent = find_communicator({comm});
  if (AON_UNLIKELY(weight == 0 && is_repeated(w, kSite{name}, parent->id))) return real({all});
  OpenCall call;
  if (weight != 0) call = begin_call(w, kSite{name}.id, parent->id);
  const int result = real({all});
  if (result == kSuccess) {{
    parent = settled(parent, {comm}, result);
    add_copy(parent, load_handle({newcomm}));
  }}
  if (weight != 0) finish_start_create(call, parent, {request}, result);
  return result;
"""

_NAME_COMMUNICATOR = """\
  Writer* w;
  const uint32_t weight = enter(kSite{name}, w);
  OpenCall call;
  if (weight != 0) call = begin_call(w, kSite{name}.id);
  const int result = real({all});
  if (weight != 0) finish_span(call, failed(result));
  if (result == kSuccess) name_communicator(*learn_communicator({comm}), {comm_name});
  return result;
"""

_FREE_COMMUNICATOR = """\
  Writer* w;
  const uint32_t weight = enter(kSite{name}, w);
  const Handle handle = handle_at({comm}, abi.comm_null);
  if (weight == 0) {{
    Communicator* taken = take_communicator(handle);
    const int result = real({all});
    end_communicator(taken, result);
    return result;
  }}
  const Communicator* c = find_communicator(handle);
  Communicator* taken = take_communicator(handle);
  OpenCall call = begin_call(w, kSite{name}.id, c->id);
  const int result = real({all});
  finish_blocking_collective(call, CollectiveOperation::kDestroyHandle, *c, kNoRoot, {{0, 0}},
                             result);
  end_communicator(taken, result);
  return result;
"""


def _in_parts(template):
    return template.replace("{request}, result)", "{request}, result, true)")


_SIMPLE = {
    **file_templates.BODIES,
    "span": _SPAN,
    "count": _SPAN,
    "cancel": _CANCEL,
    "send": _SEND,
    "receive": _RECEIVE,
    "matched_receive": _MATCHED_RECEIVE,
    "exchange": _EXCHANGE,
    "start_send": _START_SEND,
    "start_receive": _START_RECEIVE,
    "start_matched_receive": _START_MATCHED_RECEIVE,
    "prepare_send": _PREPARE_SEND,
    "prepare_partitioned_send": _in_parts(
        _PREPARE_SEND.replace("{count}", "{partitions} * {count}")
    ),
    "prepare_partitioned_receive": _in_parts(_PREPARE_RECEIVE),
    "prepare_collective": _PREPARE_COLLECTIVE,
    "start_exchange": _START_EXCHANGE,
    "prepare_receive": _PREPARE_RECEIVE,
    "start": _START_ONE,
    "start_all": _START_ALL,
    "matched_probe": _MATCHED_PROBE,
    "free_request": _FREE_REQUEST,
    "cross_request": _CROSS_REQUEST,
    "collective": _COLLECTIVE,
    "start_collective": _START_COLLECTIVE,
    "start_create": _START_CREATE,
    "name_communicator": _NAME_COMMUNICATOR,
    "free_communicator": _FREE_COMMUNICATOR,
}

_SIMPLE |= {kind: _ENTER + body for kind, body in window_templates.BODIES.items()}
_SIMPLE |= window_templates.WHOLE

_ADD_COUNTED = "add_communicator(parent, load_handle({newcomm}))"
_ADD_BY_MEMBERS = (
    "add_communicator_of_members(parent, load_handle({newcomm}), {creation_tag}, %s)"
)
_CREATES = {
    "create": _ADD_COUNTED,
    "create_group": _ADD_BY_MEMBERS % "false",
    "create_inter": _ADD_BY_MEMBERS % "false",
    "create_world": _ADD_BY_MEMBERS % "true",
}


PREPARES = {kind for kind in _SIMPLE if kind.startswith("prepare_")}


class Parts(dict):
    """What a template names: arguments by the part they play, and some fixed pieces."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        names = [a.name for a in function.arguments]
        self["name"] = function.stem
        self["all"] = function.call()
        self["all_of_look"] = function.call()
        self["all_and"] = function.call() + ", " if names else ""
        self["failed"] = "failed(result)" if function.result == "int" else "0"
        self["root"] = "root" if "root" in names else "kNoRoot"
        self["bytes"] = function.fields.get("bytes", "").replace(",", ", ")
        self["creation_tag"] = "0"
        if function.kind in ("create_group", "create_inter"):
            is_text = "stringtag" in names
            self["creation_tag"] = "hash_text(stringtag)" if is_text else "integer_tag(tag)"
        self["first_index"] = "0"
        self["how"] = function.fields.get("how", "0").replace("|", " | ")
        self["where"] = "offset" if "offset" in names else "kAtPointer"
        self["size_or_none"] = "size" if "size" in names else "0"
        self["operation"] = function.fields.get("operation", "kOther")
        self["flavour"] = function.fields.get("flavour", "")
        self["target"] = "target_in_window(rank)" if "rank" in names else "kAnyPeer"
        is_access = self["operation"] in ("kStart", "kComplete")
        self["epoch"] = "access_group" if is_access else "exposure_group"
        if "status" in names:
            self["with_status"] = function.call(status="told")
        self["with_waiting_status"] = function.call(status="waiting.status()")
        told = "waiting.statuses()"
        self["with_waiting_statuses"] = function.call(status=told, statuses=told)
        is_to_c = function.name.endswith("_f2c")
        self["in_fortran"], self["in_c"] = ("request", "result")[:: 1 if is_to_c else -1]
        if "incount" in names:
            self["count"] = "incount"

    def __missing__(self, name):
        return self.function.part(name)


def _create_body(function):
    has_parent = any(a.name == function.fields.get("comm", "comm") for a in function.arguments)
    parent = "{comm}" if has_parent else "abi.comm_self"
    finish = _FINISH_CREATE_GROUP if function.kind == "create_group" else _FINISH_CREATE
    template = _CREATE.replace("{finish}", finish).replace("{add}", _CREATES[function.kind])
    return template.replace("{parent_handle}", parent)


def body(function):
    """Template for a call that is recorded."""
    if function.kind in completion_templates.KINDS:
        return completion_templates.body(function)
    if function.kind in _CREATES:
        return _create_body(function)
    return _SIMPLE[function.kind]


def look_body(function):
    """Template for a call that is not timed: it is recorded if it found something."""
    if function.kind == "poll_window":
        return window_templates.LOOK
    return completion_templates.look_body(function)


def look_many_body(function):
    """Template for what look_body() leaves to a function of its own; None: nothing."""
    return completion_templates.look_many_body(function)


def pass_body(function):
    """Template for a call while paused, where it may complete a request."""
    return completion_templates.pass_body(function)
