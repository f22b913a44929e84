"""What is recorded of a call of one-sided communication, by kind of row: bodies behind the test for
nested calls of templates.py, and whole ones."""

_TRANSFER = """\
  const Window* window = find_window({win});
  OpenCall call = begin_call(w, kSite{name}.id);
  const int result = real({all});
  const Bytes bytes = result == kSuccess ? {bytes} : Bytes{{0, 0}};
  finish_transfer(call, RmaOperation::{operation}, *window, {target_rank}, bytes, result);
  return result;
"""

_START_TRANSFER = """\
  const Window* window = find_window({win});
  OpenCall call = begin_call(w, kSite{name}.id);
  const int result = real({all});
  const Bytes bytes = result == kSuccess ? {bytes} : Bytes{{0, 0}};
  finish_start_transfer(call, RmaOperation::{operation}, *window, {target_rank}, bytes, {request},
                        result);
  return result;
"""

_SYNCHRONIZE = """\
  const Window* window = find_window({win});
  OpenCall call = begin_call(w, kSite{name}.id);
  const int result = real({all});
  finish_window_call(call, RmaOperation::{operation}, *window, {target}, 0, result);
  return result;
"""

_LOCK_WINDOW = _SYNCHRONIZE.replace("RmaOperation::{operation}", "lock_operation({lock_type})")

_CLOSE_EPOCH = """\
  const Window* window = find_window({win});
  OpenCall call = begin_call(w, kSite{name}.id);
  const int result = real({all});
  finish_window_call(call, RmaOperation::{operation}, *window, kAnyPeer,
                     window->{epoch}.load(std::memory_order_relaxed), result);
  return result;
"""

# MPI_Win_test: a poll whose success ends an epoch.
_POLL_WINDOW = """\
  OpenCall call = begin_call(w, kSite{name}.id);
  const int result = real({all});
  if (result == kSuccess && *{flag} != 0) {{
    const Window* window = find_window({win});
    finish_window_call(call, RmaOperation::kTest, *window, kAnyPeer,
                       window->{epoch}.load(std::memory_order_relaxed), result);
    return result;
  }}
  finish_span(call, failed(result), weight);
  return result;
"""

LOOK = """\
{known}\
  const int result = real({all});
  if (AON_LIKELY(result == kSuccess && *{flag} == 0)) return result;
  record_tested(kSite{name}, {win}, result);
  return result;
"""

# The group of an epoch that begins while nothing is recorded is not known.
_OPEN_EPOCH = """\
  Writer* w;
  const uint32_t weight = enter(kSite{name}, w);
  if (AON_UNLIKELY(weight == 0 && is_repeated(w, kSite{name}))) return real({all});
  Window* window = find_window({win});
  if (weight == 0) {{
    window->{epoch}.store(0, std::memory_order_relaxed);
    return real({all});
  }}
  OpenCall call = begin_call(w, kSite{name}.id);
  const int result = real({all});
  const uint32_t epoch_group = result == kSuccess ? group_id({group}) : 0;
  window->{epoch}.store(epoch_group, std::memory_order_relaxed);
  finish_window_call(call, RmaOperation::{operation}, *window, kAnyPeer, epoch_group, result);
  return result;
"""

# Windows are followed also while nothing is recorded: all members must count alike. Of one that
# could not be made the communicator is known.
_CREATE_WINDOW = """\
  Writer* w;
  const uint32_t weight = enter(kSite{name}, w);
  if (AON_UNLIKELY(weight == 0 && is_repeated(w, kSite{name}))) return real({all});
  Communicator* c = find_communicator({comm});
  uint32_t number = count_window(c);
  OpenCall call;
  if (weight != 0) call = begin_call(w, kSite{name}.id);
  const int result = real({all});
  if (AON_UNLIKELY(result != kSuccess)) {{
    c->window_count.fetch_sub(1, std::memory_order_relaxed);
  }} else if (AON_UNLIKELY(c->id == 0)) {{
    c = settled(c, {comm}, result);
    number = count_window(c);
  }}
  if (AON_UNLIKELY(result != kSuccess)) {{
    if (weight != 0) {{
      finish_blocking_collective(call, CollectiveOperation::kCreateHandle, *c, kNoRoot, {{0, 0}},
                                 result);
    }}
    return result;
  }}
  const Window* window =
      add_window(*c, number, load_handle({win}), WindowFlavour::{flavour});
  if (weight == 0) return result;
  finish_window_call(call, creation_of(WindowFlavour::{flavour}), *window, kAnyPeer, 0, result);
  return result;
"""

_NAME_WINDOW = """\
  Writer* w;
  const uint32_t weight = enter(kSite{name}, w);
  OpenCall call;
  if (weight != 0) call = begin_call(w, kSite{name}.id);
  const int result = real({all});
  if (weight != 0) finish_span(call, failed(result));
  if (result == kSuccess) name_window(*find_window({win}), {win_name});
  return result;
"""

_FREE_WINDOW = """\
  Writer* w;
  const uint32_t weight = enter(kSite{name}, w);
  const Handle handle = handle_at({win}, abi.window_null);
  Window* window = take_window(handle);
  if (weight == 0) {{
    const int result = real({all});
    end_window(window, handle, result);
    return result;
  }}
  OpenCall call = begin_call(w, kSite{name}.id);
  const int result = real({all});
  finish_window_call(call, end_of(window->flavour), *window, kAnyPeer, 0, result);
  end_window(window, handle, result);
  return result;
"""

BODIES = {
    "transfer": _TRANSFER,
    "start_transfer": _START_TRANSFER,
    "synchronize": _SYNCHRONIZE,
    "lock_window": _LOCK_WINDOW,
    "close_epoch": _CLOSE_EPOCH,
    "poll_window": _POLL_WINDOW,
}
WHOLE = {
    "open_epoch": _OPEN_EPOCH,
    "create_window": _CREATE_WINDOW,
    "name_window": _NAME_WINDOW,
    "free_window": _FREE_WINDOW,
}
