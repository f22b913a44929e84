/// DWARF expressions as call frame information uses them (DWARF 5, section 2.5): the CFA of a PLT
/// entry, where a signal frame keeps its registers. No loops, no calls: a step per operation.
/// Thread: any.   Errors: nullopt for a register or memory that is not known, an operation that we
/// do not have, a stack that is too low or too high.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <span>

#include "core/unwind/registers.h"

namespace aon::unwind {

/// What `operations` leave on top of the stack; `cfa` is the value of DW_OP_call_frame_cfa.
std::optional<uint64_t> evaluate(std::span<const Dwarf_Op> operations, const Registers& registers,
                                 const StackCopy& stack, std::optional<uint64_t> cfa);

}  // namespace aon::unwind
