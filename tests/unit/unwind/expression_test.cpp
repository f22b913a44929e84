// Expressions of call frame information.
#include "core/unwind/expression.h"

#include <dwarf.h>
#include <gtest/gtest.h>

#include <vector>

namespace aon::unwind {
namespace {

Dwarf_Op op(int atom, uint64_t number = 0) {
  Dwarf_Op made{};
  made.atom = static_cast<uint8_t>(atom);
  made.number = number;
  return made;
}

class Expression : public testing::Test {
 protected:
  Expression() {
    registers_.set(kSp, 0x1000);
    registers_.set(kIp, 0x40100b);
  }
  std::optional<uint64_t> value(const std::vector<Dwarf_Op>& operations) const {
    return evaluate(operations, registers_, stack_, 0x2000);
  }

  Registers registers_;
  uint64_t words_[2] = {7, 9};
  StackCopy stack_{0x1000, reinterpret_cast<const uint8_t*>(words_), sizeof(words_)};
};

TEST_F(Expression, gives_the_cfa_of_a_plt_entry) {
  // CFA = rsp + 8 + ((rip & 15) >= 11) * 8, as linkers write it
  EXPECT_EQ(value({op(DW_OP_breg7, 8), op(DW_OP_breg16), op(DW_OP_lit15), op(DW_OP_and),
                   op(DW_OP_lit11), op(DW_OP_ge), op(DW_OP_lit3), op(DW_OP_shl), op(DW_OP_plus)}),
            0x1010u);
}

TEST_F(Expression, reads_the_stack_and_the_cfa) {
  EXPECT_EQ(value({op(DW_OP_breg7, 8), op(DW_OP_deref)}), 9u);
  EXPECT_EQ(value({op(DW_OP_call_frame_cfa), op(DW_OP_plus_uconst, static_cast<uint64_t>(-16))}),
            0x1ff0u);
}

TEST_F(Expression, knows_nothing_of_what_is_not_there) {
  EXPECT_EQ(value({}), std::nullopt);
  EXPECT_EQ(value({op(DW_OP_plus)}), std::nullopt);
  EXPECT_EQ(value({op(DW_OP_breg0)}), std::nullopt) << "rax is not recorded";
  EXPECT_EQ(value({op(DW_OP_breg7, 16), op(DW_OP_deref)}), std::nullopt);
  EXPECT_EQ(value({op(DW_OP_breg7, 9), op(DW_OP_deref)}), std::nullopt) << "half outside";
  EXPECT_EQ(value({op(DW_OP_const8u, ~uint64_t{0}), op(DW_OP_deref)}), std::nullopt);
  EXPECT_EQ(value({op(DW_OP_lit1), op(DW_OP_skip, 0)}), std::nullopt) << "no jumps";
  EXPECT_EQ(value({op(DW_OP_regx, 1000)}), std::nullopt);
  EXPECT_EQ(value(std::vector<Dwarf_Op>(100, op(DW_OP_lit1))), std::nullopt);
}

TEST_F(Expression, shifts_by_any_number_are_defined) {
  EXPECT_EQ(value({op(DW_OP_lit1), op(DW_OP_const1u, 64), op(DW_OP_shl)}), 0u);
}

}  // namespace
}  // namespace aon::unwind
