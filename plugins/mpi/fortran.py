"""The Fortran wrappers of functions.table: one function per row for mpif.h and `use mpi` with three
other spellings, and one for `use mpi_f08`. Their bodies are the C wrappers' (templates.py), with C
forms of the arguments in front."""
import re

import shapes
import templates

# Rows without a Fortran form, and why.
C_ONLY = {
    r"MPI_T_\w+": "the tools interface is C alone",
    r"MPI_\w+_(c2f|f2c)": "conversions between the languages are C's",
}
# Not in the mpi_f08 module: removed from the standard before it, or C's own there.
NOT_IN_F08 = {
    "MPI_Address", "MPI_Attr_delete", "MPI_Attr_get", "MPI_Attr_put", "MPI_Errhandler_create",
    "MPI_Errhandler_get", "MPI_Errhandler_set", "MPI_Keyval_create", "MPI_Keyval_free",
    "MPI_Type_extent", "MPI_Type_hindexed", "MPI_Type_hvector", "MPI_Type_lb", "MPI_Type_struct",
    "MPI_Type_ub",
}  # fmt: skip
# Forms with names of their own: an address as TYPE(C_PTR), a function of a module.
VARIANTS = {
    "MPI_Alloc_mem": "_cptr",
    "MPI_Win_allocate": "_cptr",
    "MPI_Win_allocate_shared": "_cptr",
    "MPI_Win_shared_query": "_cptr",
    "MPI_Wtime": "_f90",
    "MPI_Wtick": "_f90",
}
# Arguments that only C's form has.
C_ARGUMENTS = {"MPI_Info_create_env": {"argc", "argv"}}
# Rows whose form for mpif.h calls no C function in any library: attributes are words there.
NOT_THROUGH_C = {
    "MPI_Attr_get", "MPI_Attr_put", "MPI_Comm_get_attr", "MPI_Comm_set_attr", "MPI_Type_get_attr",
    "MPI_Type_set_attr", "MPI_Win_get_attr", "MPI_Win_set_attr",
}  # fmt: skip
# Large-count rows that mpi_f08 has under names of its own: those without buffers. The others call
# the C function.
LARGE_IN_F08 = {
    "MPI_Buffer_detach_c", "MPI_Comm_detach_buffer_c", "MPI_Get_count_c", "MPI_Get_elements_c",
    "MPI_Op_create_c", "MPI_Pack_external_size_c", "MPI_Pack_size_c", "MPI_Register_datarep_c",
    "MPI_Session_detach_buffer_c", "MPI_Status_set_elements_c", "MPI_Type_contiguous_c",
    "MPI_Type_create_darray_c", "MPI_Type_create_hindexed_block_c",
    "MPI_Type_create_hindexed_c", "MPI_Type_create_hvector_c",
    "MPI_Type_create_indexed_block_c", "MPI_Type_create_struct_c", "MPI_Type_create_subarray_c",
    "MPI_Type_get_contents_c", "MPI_Type_get_envelope_c", "MPI_Type_indexed_c",
    "MPI_Type_size_c", "MPI_Type_vector_c", "MPI_Win_allocate_c", "MPI_Win_allocate_shared_c",
    "MPI_Win_shared_query_c",
}  # fmt: skip
# Rows whose body is in the wrapper itself: the arguments stay in registers, 1.2 ns a call.
_HOT = ("Send", "Recv", "Isend", "Irecv", "Wait")
# Fortran functions of the library that have no wrapper, and why.
LEFT_ALONE = {
    r"mpi_sizeof_\w+": "answers from the type of its argument",
    r"mpi_f_sync_reg": "does nothing, by definition",
    r"mpi_aint_(add|diff)(_f90)?": "arithmetic; C has macros for it",
    r"mpi_(\w+_)?(dup|null_copy|null_delete)_fn": "a callback that the library itself calls",
    r"mpi_get_(library_)?version": "as C's (left_alone.table)",
    r"mpi_conversion_fn_null": "a callback that the library itself calls",
    r"mpi_delete_error_\w+": "not of the standard that the library has",
    r"mpi_\w+_f08ts(_large)?": "calls the C function by its MPI_ name, whose wrapper sees it",
}

_SPANS = {"count", "span"}
_ALWAYS = {"create", "create_group", "create_inter", "create_world", "start_create"}
_ALWAYS |= {"name_communicator", "free_communicator", "open_file", "close_file", "set_view"}
_ALWAYS |= {"create_window", "name_window", "free_window", "open_epoch", *templates.PREPARES}
_HANDLES = {
    "MPI_Comm": "communicator_from_fortran",
    "MPI_Datatype": "datatype_from_fortran",
    "MPI_Request": "request_from_fortran",
    "MPI_Message": "message_from_fortran",
    "MPI_Win": "window_from_fortran",
    "MPI_Group": "group_from_fortran",
    "MPI_Op": "operation_from_fortran",
    "MPI_File": "file_from_fortran",
}

# Kinds whose request is one that the call has made.
_BEGINS = re.compile(r"start_(?!all)\w+|prepare_\w+")
_BY_VALUE = {"MPI_Comm": "communicator_at", "MPI_Datatype": "datatype_at", "MPI_File": "file_at"}


class FortranParts(templates.Parts):
    """What a template names, where `real` has the arguments already."""

    def __init__(self, function):
        super().__init__(function)
        self["all"] = ""
        self["all_of_look"] = "words, function, 0"
        self["with_status"] = "told"
        self["with_waiting_status"] = "waiting.status()"
        self["with_waiting_statuses"] = "Statuses{waiting.statuses()}"
        self["first_index"] = "fortran_first_index"


def has_form(function):
    if function.plain:
        return function.name in LARGE_IN_F08
    return not any(re.fullmatch(pattern, function.name) for pattern in C_ONLY)


def families(function):
    """(family, exported name without spelling) of each form of a row."""
    if function.plain:
        return [("kLarge", function.plain.name.lower() + "_f08_large")]
    name = function.name.lower()
    result = [("kOwnPlain" if function.name in NOT_THROUGH_C else "kPlain", name)]
    if function.name in VARIANTS:
        result.append(("kVariant", name + VARIANTS[function.name]))
    if function.name not in NOT_IN_F08:
        result.append(("kF08", name + "_f08"))
    return result


def spellings(name):
    """All names of one function; the first is the one that is defined."""
    if name.endswith("_f08_large"):  # MPICH 4.0; from 4.2 on it is the standard's, of C's name
        return [name + "_", name.removesuffix("_f08_large") + "_c_f08_"]
    if name.endswith("_f08"):
        return [name + "_"]
    return [name + "_", name + "__", name, name.upper()]


def exported(function):
    """All names that a row exports."""
    if not has_form(function):
        return []
    return [s for _, name in families(function) for s in spellings(name)]


def arguments(function):
    """Of the Fortran form, without its ierror."""
    without = C_ARGUMENTS.get(function.name, set())
    return [a for a in function.arguments if a.name not in without]


def _word_count(function):
    texts = sum(1 for a in arguments(function) if a.base == "char")
    return len(arguments(function)) + 1 + texts


_ENTER = re.compile(
    r"  Writer\* w = writer\(\);\n"
    r"  if \(AON_UNLIKELY\(is_inside_call\(w\)\)\) (return .*|{\n(    .*\n)*  })\n"
)

# What a message's envelope is made of is looked at where it is needed.
_LATE = {"int": "FortranInteger", "MPI_Datatype": "FortranDatatype"}
_LATE["MPI_Comm"] = "FortranCommunicator"


def _local(function, index, is_message):
    """The C form of one argument."""
    argument = arguments(function)[index]
    name, word = argument.name, f"words[{index}]"
    if is_message and argument.type in ("int", "Handle") and argument.base in _LATE:
        return f"{_LATE[argument.base]} {name}{{{word}}};"
    if argument.base == "char":
        length = len(arguments(function)) + 1
        return f"const FortranText {name}({word}, words[{length}]);"
    if argument.base == "MPI_Status":
        return f"Status* {name} = {name}_at({word});"
    if argument.base in _HANDLES and argument.type == "Handle":
        convert = _BY_VALUE.get(argument.base, _HANDLES[argument.base])
        return f"const Handle {name} = {convert}({word});"
    if argument.base in _HANDLES:
        convert = _HANDLES[argument.base]
        if argument.base == "MPI_Request" and _BEGINS.fullmatch(function.kind):
            convert = "begun_" + convert
        return f"Handles {name}({word}, {convert});"
    if argument.type == "int64_t":
        return f"const int64_t {name} = large_at({word});"
    if argument.type == "int":
        return f"const int {name} = integer_at({word});"
    if name == "index" and argument.type == "int*":
        return f"FortranIndex {name}({word});"
    if argument.base == "int":
        return f"const int* {name} = static_cast<const int*>({word});"
    return f"const void* {name} = buffer_at({word});"


def _locals(function, body):
    used = set(re.findall(r"\w+", body))
    # Of two messages one may arrive where the other's arguments stand.
    is_message = len(used & {"outgoing", "incoming"}) == 1
    return [
        f"  [[maybe_unused]] {_local(function, i, is_message)}"
        for i, a in enumerate(arguments(function))
        if a.name in used and not a.is_unseen
    ]


def _call_type(function):
    names = [a.name for a in arguments(function)]
    status = next((names.index(n) for n in ("status", "statuses") if n in names), None)
    counts = [_word_count(function), len(names)]
    counts += [] if status is None else [status]
    return f"FortranCall<{', '.join(map(str, counts))}>"


def _body(function, prefix, template, call):
    text = template.format_map(FortranParts(function))
    name = function.stem
    parameters = "const Word* words, void* function, [[maybe_unused]] uint32_t weight"
    if "const uint32_t weight" in text:
        parameters = "const Word* words, void* function, uint32_t"
    is_hot = prefix == "record" and name in _HOT
    how = "[[gnu::always_inline]] inline" if is_hot else "[[gnu::noinline]]"
    lines = [f"{how} int {prefix}_{name}({parameters}) {{"]
    lines += [f"  {call} real(function, words);"]
    # A call within another one needs no arguments.
    enter = _ENTER.match(text)
    text = text[enter.end() :] if enter else text
    lines += [enter[0].rstrip("\n")] if enter else []
    lines += [*_locals(function, text), text + "}"]
    return "\n".join(lines)


def bodies(function):
    """The functions that the entries of a row share."""
    if function.kind in _SPANS:
        return []
    call = _call_type(function)
    result = [_body(function, "record", templates.body(function), call)]
    if function.kind in templates.FINDS:
        many = templates.look_many_body(function)
        looks = [("look_many", many)] if many else []
        for prefix, look in (*looks, ("look", templates.look_body(function))):
            look = look.replace("{known}", "")
            result.append(_body(function, prefix, look, f"CountedCall<{call}>"))
    if function.kind in templates.PASSED:
        result.append(_body(function, "pass", templates.pass_body(function), call))
    return result


def _clock(function, family, entry):
    body = f"return start_fortran_clock(kSite{function.stem}, Family::{family});"
    return f"AON_EXPORT double {entry}() {{ {body} }}"


def _entry(function, family, entry):
    if function.result == "double":
        return _clock(function, family, entry)
    name = function.stem
    words = [f"w{i}" for i in range(_word_count(function))]
    parameters = ", ".join(f"Word {w}" for w in words)
    site, all_words = f"kSite{name}", ", ".join(words)
    if function.kind in _SPANS:
        call = f"enter_fortran_span<Family::{family}>({site}, {len(arguments(function))}"
    elif function.kind in _ALWAYS:
        call = f"enter_fortran_always<Family::{family}>({site}, record_{name}"
    else:
        look = f"look_{name}" if function.kind in templates.FINDS else "nullptr"
        passed = f"pass_{name}" if function.kind in templates.PASSED else "nullptr"
        bodies = f"constexpr FortranBodies kBodies{{record_{name}, {look}, {passed}}};"
        is_poll = "true" if function.kind in templates.POLLS else "false"
        call = f"enter_fortran<Family::{family}, record_{name}, {is_poll}>({site}, kBodies"
        return (
            f"AON_EXPORT int {entry}({parameters}) {{\n  static {bodies}\n"
            f"  return {call}, {all_words});\n}}"
        )
    return f"AON_EXPORT int {entry}({parameters}) {{\n  return {call}, {all_words});\n}}"


def source(functions):
    """The text of one file of wrappers."""
    inner, outer, others = [], [], []
    for function in functions:
        if not has_form(function) or function.kind == "by_hand":
            continue
        inner += bodies(function)
        for family, name in families(function):
            usual, *rest = spellings(name)
            outer.append(_entry(function, family, usual))
            others += [f"AON_FORTRAN_SPELLING({usual}, {other});" for other in rest]
    lines = ["// Made from functions.table.", '#include "mpi/fortran.h"']
    lines += ['#include "mpi/wrapper.h"', "", "namespace aon::mpi {", "namespace {", *inner]
    lines += ["}  // namespace", 'extern "C" {', *outer, '}  // extern "C"']
    return "\n".join([*lines, *others, "}  // namespace aon::mpi", ""])
