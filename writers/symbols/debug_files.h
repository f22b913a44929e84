/// Where else the names and lines of a program may be: the files that distributions and build
/// systems put aside. Each is taken only when it belongs to the program: its build-id, or for one
/// without, the checksum of .gnu_debuglink.
///
///     DIR/.build-id/xx/yyyy.debug    DIR: each debug directory
///     name of .gnu_debuglink         beside the program, in .debug beside it, in DIR/<its folder>
///     debuginfod                     only when allowed and DEBUGINFOD_URLS is set
///     .gnu_debugdata                 a small symbol table inside the program, xz (needs liblzma)
///
/// Thread: any.   Cost: file look-ups; a checksum reads the whole file; debuginfod is the network.
#pragma once

#include <optional>
#include <string>

#include "core/base/elf_file.h"
#include "core/base/result.h"
#include "writers/symbols/debug_search.h"

namespace aon::symbols {

/// The file with the code that has this build-id: DIR/.build-id/xx/yyyy, debuginfod.
std::optional<ElfFile> find_program(const std::string& build_id, const DebugSearch& search);

/// The separate debug file of `file`.
std::optional<ElfFile> find_debug_file(const ElfFile& file, const DebugSearch& search);

/// The symbol table packed into .gnu_debugdata.
/// Errors: kNotFound when there is none, kDamaged, kUnavailable when built without liblzma.
Result<ElfFile> unpack_debugdata(const ElfFile& file);

/// "8d55b2..." of raw bytes.
std::string hex(const std::string& bytes);

}  // namespace aon::symbols
