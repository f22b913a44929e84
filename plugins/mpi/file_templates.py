"""What is recorded of a call on a file, by kind of row (functions.table says what a kind is). All
other kinds are in templates.py."""

# Inside another MPI call: only forwarded.
ENTER = """\
  Writer* w = writer();
  if (AON_UNLIKELY(is_inside_call(w))) return real({all});
"""

_BEGIN_ACCESS = """\
  Transfer transfer =
      begin_transfer(find_file({fh}), IoOperation::{operation}, {how}, {where}, {count},
                     {datatype});
"""

_ACCESS = (
    ENTER
    + _BEGIN_ACCESS
    + """\
  OwnStatus own;
  Status* told = {status} == abi.status_ignore ? own.get() : {status};
  OpenCall call = begin_call(w, kSite{name}.id, 0, 0, transfer.bytes);
  const int result = real({with_status});
  settle(&transfer, {count}, {datatype}, result);
  finish_transfer(call, transfer, told, result);
  return result;
"""
)

_START_ACCESS = (
    ENTER
    + _BEGIN_ACCESS
    + """\
  OpenCall call = begin_call(w, kSite{name}.id, 0, 0, transfer.bytes);
  const int result = real({all});
  settle(&transfer, {count}, {datatype}, result);
  finish_start_transfer(call, transfer, {request}, result);
  return result;
"""
)

_BEGIN_SPLIT = (
    ENTER
    + _BEGIN_ACCESS
    + """\
  OpenCall call = begin_call(w, kSite{name}.id, 0, 0, transfer.bytes);
  const int result = real({all});
  settle(&transfer, {count}, {datatype}, result);
  finish_begin_split(call, transfer, result);
  return result;
"""
)

_END_SPLIT = (
    ENTER
    + """\
  File* file = find_file({fh});
  OwnStatus own;
  Status* told = {status} == abi.status_ignore ? own.get() : {status};
  OpenCall call = begin_call(w, kSite{name}.id);
  const int result = real({with_status});
  finish_end_split(call, file, IoOperation::{operation}, {how}, told, result);
  return result;
"""
)

_SEEK = (
    ENTER
    + """\
  File* file = find_file({fh});
  OpenCall call = begin_call(w, kSite{name}.id);
  const int result = real({all});
  finish_seek(call, file, {offset}, {whence}, {how}, result);
  return result;
"""
)

_FILE_CALL = (
    ENTER
    + """\
  const File* file = find_file({fh});
  OpenCall call = begin_call(w, kSite{name}.id);
  const int result = real({all});
  finish_file_call(call, *file, IoOperation::{operation}, {size_or_none}, result);
  return result;
"""
)

_DELETE_FILE = (
    ENTER
    + """\
  OpenCall call = begin_call(w, kSite{name}.id);
  const int result = real({all});
  finish_delete(call, {filename}, result);
  return result;
"""
)

# Files are followed also while nothing is recorded: all members must count alike, and a view says
# what later offsets mean.
_OPEN_FILE = """\
  Writer* w;
  const uint32_t weight = enter(kSite{name}, w);
  if (AON_UNLIKELY(weight == 0 && is_repeated(w, kSite{name}))) return real({all});
  Communicator* c = find_communicator({comm});
  uint32_t opened = count_opening(c);
  if (weight == 0) {{
    const int result = real({all});
    if (result == kSuccess) c = settled_opener(c, {comm}, &opened);
    if (result == kSuccess) add_file(*c, opened, load_file({fh}), {filename}, {amode}, false);
    return result;
  }}
  OpenCall call = begin_call(w, kSite{name}.id, c->id);
  const int result = real({all});
  if (result == kSuccess) c = settled_opener(c, {comm}, &opened);
  const File* file = find_file(0);
  if (result == kSuccess) file = add_file(*c, opened, load_file({fh}), {filename}, {amode}, true);
  finish_open(call, *file, result);
  return result;
"""

_CLOSE_FILE = """\
  Writer* w;
  const uint32_t weight = enter(kSite{name}, w);
  File* file = take_file(load_file({fh}));
  if (weight == 0) {{
    const int result = real({all});
    end_file(file, result);
    return result;
  }}
  OpenCall call = begin_call(w, kSite{name}.id);
  const int result = real({all});
  finish_close(call, *file, result);
  end_file(file, result);
  return result;
"""

_SET_VIEW = """\
  Writer* w;
  const uint32_t weight = enter(kSite{name}, w);
  File* file = find_file({fh});
  if (weight == 0) {{
    const int result = real({all});
    if (result == kSuccess) set_view(file, {disp}, {etype}, {filetype}, {datarep});
    return result;
  }}
  OpenCall call = begin_call(w, kSite{name}.id);
  const int result = real({all});
  finish_set_view(call, *file, {disp}, result);
  if (result == kSuccess) set_view(file, {disp}, {etype}, {filetype}, {datarep});
  return result;
"""

BODIES = {
    "access": _ACCESS,
    "start_access": _START_ACCESS,
    "begin_split": _BEGIN_SPLIT,
    "end_split": _END_SPLIT,
    "seek": _SEEK,
    "file_call": _FILE_CALL,
    "delete_file": _DELETE_FILE,
    "open_file": _OPEN_FILE,
    "close_file": _CLOSE_FILE,
    "set_view": _SET_VIEW,
}
