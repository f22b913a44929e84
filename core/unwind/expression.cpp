#include "core/unwind/expression.h"

#include <dwarf.h>

#include <array>

namespace aon::unwind {

namespace {

/// The stack machine; after a mistake it has failed for good.
class Machine {
 public:
  void push(std::optional<uint64_t> value) {
    if (!value || depth_ == values_.size())
      has_failed_ = true;
    else
      values_[depth_++] = *value;
  }
  uint64_t pop() {
    if (depth_ == 0) {
      has_failed_ = true;
      return 0;
    }
    return values_[--depth_];
  }
  void fail() { has_failed_ = true; }
  bool has_failed() const { return has_failed_; }

 private:
  std::array<uint64_t, 16> values_{};
  size_t depth_ = 0;
  bool has_failed_ = false;
};

/// value of `register_number` + `offset`
std::optional<uint64_t> based(const Registers& registers, int register_number, uint64_t offset) {
  const std::optional<uint64_t> value = registers.get(register_number);
  return value ? std::optional(*value + offset) : std::nullopt;
}

/// Operations on the two topmost values; false when `atom` is none.
bool combine(uint8_t atom, Machine* machine) {
  switch (atom) {
    case DW_OP_plus:
    case DW_OP_minus:
    case DW_OP_and:
    case DW_OP_or:
    case DW_OP_shl:
    case DW_OP_shr:
    case DW_OP_ge:
    case DW_OP_gt:
    case DW_OP_le:
    case DW_OP_lt:
      break;
    default:
      return false;
  }
  const uint64_t right = machine->pop(), left = machine->pop();
  const auto signed_left = static_cast<int64_t>(left), signed_right = static_cast<int64_t>(right);
  uint64_t result = 0;
  if (atom == DW_OP_plus) result = left + right;
  if (atom == DW_OP_minus) result = left - right;
  if (atom == DW_OP_and) result = left & right;
  if (atom == DW_OP_or) result = left | right;
  if (atom == DW_OP_shl) result = right < 64 ? left << right : 0;
  if (atom == DW_OP_shr) result = right < 64 ? left >> right : 0;
  if (atom == DW_OP_ge) result = signed_left >= signed_right ? 1 : 0;
  if (atom == DW_OP_gt) result = signed_left > signed_right ? 1 : 0;
  if (atom == DW_OP_le) result = signed_left <= signed_right ? 1 : 0;
  if (atom == DW_OP_lt) result = signed_left < signed_right ? 1 : 0;
  machine->push(result);
  return true;
}

void step(const Dwarf_Op& operation, const Registers& registers, const StackCopy& stack,
          std::optional<uint64_t> cfa, Machine* machine) {
  const uint8_t atom = operation.atom;
  if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
    machine->push(based(registers, atom - DW_OP_breg0, operation.number));
  } else if (atom >= DW_OP_reg0 && atom <= DW_OP_reg31) {
    machine->push(registers.get(atom - DW_OP_reg0));
  } else if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) {
    machine->push(uint64_t{atom} - DW_OP_lit0);
  } else if (atom >= DW_OP_const1u && atom <= DW_OP_consts) {
    machine->push(operation.number);
  } else if (atom == DW_OP_bregx && operation.number < kRegisterCount) {
    machine->push(based(registers, static_cast<int>(operation.number), operation.number2));
  } else if (atom == DW_OP_regx && operation.number < kRegisterCount) {
    machine->push(registers.get(static_cast<int>(operation.number)));
  } else if (atom == DW_OP_call_frame_cfa) {
    machine->push(cfa);
  } else if (atom == DW_OP_plus_uconst) {
    machine->push(machine->pop() + operation.number);
  } else if (atom == DW_OP_deref) {
    machine->push(stack.read(machine->pop()));
  } else if (atom != DW_OP_nop && atom != DW_OP_stack_value && !combine(atom, machine)) {
    machine->fail();
  }
}

}  // namespace

std::optional<uint64_t> evaluate(std::span<const Dwarf_Op> operations, const Registers& registers,
                                 const StackCopy& stack, std::optional<uint64_t> cfa) {
  Machine machine;
  for (const Dwarf_Op& operation : operations) {
    step(operation, registers, stack, cfa, &machine);
    if (machine.has_failed()) return std::nullopt;
  }
  const uint64_t result = machine.pop();
  return machine.has_failed() ? std::nullopt : std::optional(result);
}

}  // namespace aon::unwind
