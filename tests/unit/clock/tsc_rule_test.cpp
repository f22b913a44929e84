#include "core/clock/tsc_rule.h"

#include <gtest/gtest.h>

namespace aon::clock {
namespace {

TEST(TscRule, words_are_whole) {
  EXPECT_TRUE(has_word("tsc hpet acpi_pm \n", "tsc"));
  EXPECT_TRUE(has_word("hpet tsc\n", "tsc"));
  EXPECT_TRUE(has_word("tsc", "tsc"));
  EXPECT_FALSE(has_word("tsc-early hpet\n", "tsc"));
  EXPECT_FALSE(has_word("kvm-clock mytsc\n", "tsc"));
  EXPECT_FALSE(has_word("", "tsc"));
  EXPECT_FALSE(has_word(" \n", "tsc"));
}

TEST(TscRule, the_kernel_trusts_what_it_uses_and_below_kvm_what_it_has) {
  EXPECT_TRUE(kernel_trusts_tsc("tsc\n", "tsc hpet acpi_pm\n"));
  EXPECT_TRUE(kernel_trusts_tsc("kvm-clock\n", "kvm-clock tsc acpi_pm\n"));
}

TEST(TscRule, the_kernel_does_not_trust_what_it_gave_up) {
  EXPECT_FALSE(kernel_trusts_tsc("kvm-clock\n", "kvm-clock acpi_pm\n"));
  EXPECT_FALSE(kernel_trusts_tsc("hpet\n", "hpet acpi_pm\n"));
  // Early in the start, and where an administrator chose another one.
  EXPECT_FALSE(kernel_trusts_tsc("tsc-early\n", "tsc-early hpet\n"));
  EXPECT_FALSE(kernel_trusts_tsc("hpet\n", "tsc hpet\n"));
  EXPECT_FALSE(kernel_trusts_tsc("", ""));
}

}  // namespace
}  // namespace aon::clock
