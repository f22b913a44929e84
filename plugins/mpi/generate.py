#!/usr/bin/python3
"""Makes the wrappers of libaon-mpi.so from functions.table.

    generate.py functions.table OUTPUT_FOLDER FILE_COUNT

writes sites.h (ids and names of the call sites), wrappers_0.cpp ... for C, and fortran_0.cpp ...
for Fortran (fortran.py). The wrappers know no <mpi.h>: a handle is a register (handles.h), so one
set serves libraries with handles of either kind.
"""
import dataclasses
import pathlib
import re
import sys

import fortran
import shapes
import templates

POLL_PERIOD = 64
MAX_SITES = 504  # kMaxCounters of aon/ring.h: every MPI function can be counted

_ROW = re.compile(
    r"(?P<kind>\w+)(?P<fields>(?: \w+=\S+)*): "
    r"(?P<result>\w+) (?P<name>MPI_\w+)\((?P<arguments>.*)\)$"
)
_SCALARS = {"int", "double", "char", "void"}
_WORDS = {"MPI_Aint": "int64_t", "MPI_Offset": "int64_t", "MPI_Fint": "int"}
_UNSEEN = {"MPI_Info", "MPI_Errhandler"}



class TableError(Exception):
    """A row that makes no wrapper."""


@dataclasses.dataclass
class Argument:
    """One argument: its name, its type as the wrappers know it, and what that was made from."""

    name: str
    type: str
    base: str = ""

    @property
    def is_unseen(self):
        """No body looks at it: a handle of a kind that no record has, a large integer."""
        return self.type == "Handle" and self.base in _UNSEEN


@dataclasses.dataclass
class Function:
    """One row. `site` is its call site's id, `index` its number among all functions; they differ
    for large-count forms and drafts, which have the call site of `plain`."""

    index: int
    site: int
    name: str
    kind: str
    result: str
    arguments: list
    fields: dict
    prototype: str
    is_variadic: bool = False
    plain: "Function" = None

    @property
    def region(self):
        """The name of the call site."""
        return self.plain.name if self.plain else self.name

    @property
    def stem(self):
        """What the names of its parts have of its own."""
        return self.name.removeprefix("MPI_")

    @property
    def role(self):
        return self.fields.get("role", "kFunction")

    @property
    def is_optional(self):
        """Not every library has it."""
        return self.fields.get("optional") == "yes"

    @property
    def mode(self):
        if self.kind in ("count", "cross_request"):
            return "kModeCount"
        if self.kind in templates.POLLS:
            return f"kModeSample + {POLL_PERIOD - 1}"
        return "kModeFull"

    def part(self, name):
        """The argument that plays the part `name`."""
        chosen = self.fields.get(name, name)
        if chosen not in (a.name for a in self.arguments):
            raise TableError(f"{self.name}: {self.kind} needs an argument {chosen}")
        return chosen

    def call(self, **replaced):
        """The argument list of a call, some arguments replaced."""
        return ", ".join(replaced.get(a.name, a.name) for a in self.arguments)


def wrapper_type(mpi_type, is_pointer):
    """The type of the wrappers for a type of the standard: a handle is a word, memory with handles
    or addresses in it is not looked at."""
    if mpi_type == "MPI_Status":
        return "Status*" if is_pointer else None
    if mpi_type == "MPI_Count":
        return "int64_t*" if is_pointer else "int64_t"
    if is_pointer:
        return None
    if mpi_type in _WORDS:
        return _WORDS[mpi_type]
    return "Handle" if mpi_type.startswith("MPI_") else mpi_type


def parse_argument(text):
    """`const MPI_Datatype sendtypes[]` -> Argument("sendtypes", "const void*")"""
    match = re.fullmatch(r"(const )?(\w+)(\**) (\w+)((?:\[\d*\])*)", text)
    if not match:
        raise TableError(f"cannot read the argument '{text}'")
    const, base, stars, name, brackets = match.groups()
    const = const or ""
    name += "_" if name in templates.LOCAL_NAMES else ""
    if base in _SCALARS:
        dimensions = re.findall(r"\[(\d*)\]", brackets)
        if len(dimensions) == 2:
            return Argument(name, f"{const}{base} (*)[{dimensions[1]}]", base)
        return Argument(name, f"{const}{base}{stars}{'*' * len(dimensions)}", base)
    known = wrapper_type(base, bool(stars or brackets))
    is_seen = known in ("Status*", "int64_t*")
    return Argument(name, const + known if is_seen else known or f"{const}void*", base)


def parse_arguments(text):
    if text == "void":
        return [], False
    parts = [p.strip() for p in text.split(",")]
    is_variadic = parts[-1] == "..."
    return [parse_argument(p) for p in parts if p != "..."], is_variadic


def parse_fields(text):
    return dict(field.split("=", 1) for field in text.split())


def parse_row(line, section_fields, earlier=()):
    match = _ROW.match(line)
    if not match:
        raise TableError(f"cannot read the row '{line}'")
    arguments, is_variadic = parse_arguments(match["arguments"])
    function = Function(
        index=len(earlier),
        site=len(earlier),
        name=match["name"],
        kind=match["kind"],
        result=wrapper_type(match["result"], False),
        arguments=arguments,
        fields={**section_fields, **parse_fields(match["fields"])},
        prototype=line.split(": ", 1)[1],
        is_variadic=is_variadic,
    )
    if function.kind == "large":
        become_large(function, earlier)
    elif any(f.plain for f in earlier):
        raise TableError(f"{function.name}: large-count forms stand behind all others")
    return function


def become_large(function, earlier):
    """MPI_x_c does what MPI_x does."""
    plain = [f for f in earlier if f.name + "_c" == function.name]
    if not plain:
        raise TableError(f"{function.name}: there is no plain form above it")
    function.plain = plain[0]
    function.site = plain[0].site
    function.kind = plain[0].kind
    function.fields = {**plain[0].fields, **function.fields}


def read_table(path):
    """All rows in order; the number of a row is its index."""
    functions = []
    section_fields = {}
    for line in pathlib.Path(path).read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            section_fields = parse_fields(line.partition("]")[2])
        else:
            functions.append(parse_row(line, section_fields, functions))
    names = [f.name for f in functions]
    if len(set(names)) != len(names):
        raise TableError(f"twice: {sorted({n for n in names if names.count(n) > 1})}")
    site_count = len({f.site for f in functions})
    if site_count > MAX_SITES:
        raise TableError(f"{site_count} functions, there are {MAX_SITES} call sites")
    return functions


def drafts(functions):
    """The persistent collectives as Open MPI 4 has them, MPIX_x_init for MPI_x_init: the same in
    all but the name. Fortran's are the library's own."""
    plain = [f for f in functions if f.kind == "prepare_collective" and not f.plain]
    return [
        dataclasses.replace(
            function,
            index=len(functions) + i,
            name=function.name.replace("MPI_", "MPIX_"),
            prototype=function.prototype.replace(" MPI_", " MPIX_", 1),
            plain=function,
        )
        for i, function in enumerate(plain)
    ]


def declare(argument):
    """`int (*ranges)[3]` and everything simpler."""
    if "(*)" in argument.type:
        return argument.type.replace("(*)", f"(*{argument.name})")
    return f"{argument.type} {argument.name}"


def site_of(function):
    return (
        f'{{{function.site}, "{function.region}",'
        f" static_cast<uint8_t>(RegionRole::{function.role}),"
        f" static_cast<uint8_t>(Paradigm::kMpi), {function.mode}}}"
    )


def definition(function, piece):
    """The text of one of the functions that a row becomes."""
    parameters = [declare(a) for a in function.arguments]
    if piece.extra:
        parameters.append(f"uint32_t {piece.extra}")
    name = piece.prefix + function.stem if piece.prefix else function.name
    return (
        f"{piece.attributes} {function.result} {name}({', '.join(parameters)}) {{\n{piece.body}}}\n"
    )


def constants(function):
    """The type of the real function."""
    name = function.stem
    types = ", ".join(a.type for a in function.arguments)
    return (
        f"constexpr uint32_t kFunction{name} = {function.index};\n"
        f"using Real{name} = {function.result} (*)({types});\n"
    )


def optional_functions(functions):
    numbers = [str(f.index) for f in functions if f.is_optional]
    rows = [", ".join(numbers[i : i + 16]) for i in range(0, len(numbers), 16)]
    return [
        "/// Those that not every library has.",
        f"constexpr uint32_t kOptionalCount = {len(numbers)};",
        "inline constexpr uint16_t kOptionalFunctions[kOptionalCount] = {",
        *[f"    {row}," for row in rows],
        "};",
    ]


def sites_header(functions):
    lines = [
        "/// Call sites of the wrappers and their functions, made from functions.table. The number",
        "/// of a function is the id of its call site, but for large-count forms and drafts: they",
        "/// share one.",
        "#pragma once",
        "",
        "#include <aon/definition.h>",
        "#include <aon/writer.h>",
        "",
        "namespace aon::mpi {",
        "",
        f"constexpr uint32_t kFunctionCount = {len(functions)};",
        "extern const char* const kFunctionNames[kFunctionCount];",
        "",
        *optional_functions(functions),
        "",
    ]
    for function in functions:
        lines.append(f"inline constexpr Site kSite{function.stem} = {site_of(function)};")
    return "\n".join(lines + ["", "}  // namespace aon::mpi", ""])


def source(functions, with_names, all_functions):
    lines = ["// Made from functions.table.", '#include "mpi/wrapper.h"', ""]
    lines.append("namespace aon::mpi {")
    if with_names:
        lines.append("const char* const kFunctionNames[kFunctionCount] = {")
        lines += [f'    "{f.name}",' for f in all_functions]
        lines.append("};")
    inner, outer = [], []
    for function in functions:
        if function.kind == "by_hand":
            continue
        *helpers, wrapper = shapes.pieces(function)
        inner.append(constants(function))
        inner += [definition(function, p) for p in helpers]
        outer.append(definition(function, wrapper))
    lines += ["namespace {", *inner, "}  // namespace", 'extern "C" {', *outer, "}"]
    lines += ["}  // namespace aon::mpi", ""]
    return "\n".join(lines)


def write_if_changed(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    table, folder, file_count = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    try:
        functions = read_table(table)
        functions += drafts(functions)
        folder.mkdir(parents=True, exist_ok=True)
        write_if_changed(folder / "sites.h", sites_header(functions))
        for i in range(file_count):
            text = source(functions[i::file_count], i == 0, functions)
            write_if_changed(folder / f"wrappers_{i}.cpp", text)
            text = fortran.source(functions[i::file_count])
            write_if_changed(folder / f"fortran_{i}.cpp", text)
    except TableError as error:
        sys.exit(f"{table}: {error}")


if __name__ == "__main__":
    main()
