// What we take for granted of the real libcupti, as far as it can be asked without a driver.
// Skipped, and counted as skipped, where it is not installed.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

#include "plugins/cupti/kinds.h"
#include "plugins/cupti/library.h"
#include "plugins/cupti/quirks.h"
#include "tests/unit/cupti/real_cupti.h"

namespace aon::cupti {
namespace {

class Contract : public testing::Test {
 protected:
  void SetUp() override {
    const char* name = test::find_real_cupti();
    if (name == nullptr) GTEST_SKIP() << "no libcupti.so.13: install CUDA's CUPTI";
    setenv("AON_CUPTI_LIB", name, 1);
    ASSERT_EQ(load(&cupti_), nullptr);
  }

  std::string name_of(int32_t domain, uint32_t function) const {
    const char* name = nullptr;
    return cupti_.get_callback_name(domain, function, &name) == kSuccess ? name : "";
  }

  Functions cupti_ = {};
};

TEST_F(Contract, has_all_functions_that_we_look_for) {
  EXPECT_NE(cupti_.subscribe_v2, nullptr);
  EXPECT_NE(cupti_.set_attribute, nullptr);
  EXPECT_NE(cupti_.set_thread_id_type, nullptr);
  EXPECT_NE(cupti_.enable_driver_call, nullptr);
  EXPECT_NE(cupti_.enable_runtime_call, nullptr);
  EXPECT_NE(cupti_.enable_all_sync_records, nullptr);
  EXPECT_NE(cupti_.get_callback_name, nullptr);
}

TEST_F(Contract, tells_a_version_that_may_refuse_buffers) {
  uint32_t version = 0;
  ASSERT_EQ(cupti_.get_version(&version), kSuccess);
  EXPECT_GE(version, 130000u);
  EXPECT_TRUE(quirks_of(version).may_refuse_buffers);
}

/// A version is of the subscribers' interface exactly where it has all of its functions: else we
/// would rely on a preview, or not use what is there.
TEST_F(Contract, has_the_functions_of_subscribers_from_their_version_on) {
  uint32_t version = 0;
  ASSERT_EQ(cupti_.get_version(&version), kSuccess);
  if (version < 130200) {
    EXPECT_FALSE(has_v2(cupti_));
  }
  if (quirks_of(version).has_subscribers) {
    EXPECT_TRUE(has_v2(cupti_)) << version;
  }
}

TEST_F(Contract, our_numbers_of_calls_are_its_own) {
  EXPECT_EQ(name_of(kDriverDomain, 307), "cuLaunchKernel");
  EXPECT_EQ(name_of(kDriverDomain, 442), "cuLaunchKernel_ptsz");
  EXPECT_EQ(name_of(kDriverDomain, 652), "cuLaunchKernelEx");
  EXPECT_EQ(name_of(kDriverDomain, 515), "cuGraphLaunch_ptsz");
  EXPECT_EQ(name_of(kRuntimeDomain, 211), "cudaLaunchKernel_v7000");
  EXPECT_EQ(name_of(kRuntimeDomain, 505), "__cudaLaunchKernel_v13000");
  EXPECT_EQ(name_of(kRuntimeDomain, 506), "__cudaLaunchKernel_ptsz_v13000");
  EXPECT_EQ(name_of(kRuntimeDomain, 311), "cudaGraphLaunch_v10000");
}

TEST_F(Contract, does_not_know_numbers_that_do_not_exist) {
  EXPECT_EQ(name_of(kRuntimeDomain, 60000), "");
}

TEST_F(Contract, tells_time_of_the_host) {
  uint64_t first_ns = 0;
  uint64_t second_ns = 0;
  // Without a driver it may refuse: then the host's clock is taken.
  if (cupti_.get_timestamp(&first_ns) != kSuccess) GTEST_SKIP() << "no time without a driver";
  ASSERT_EQ(cupti_.get_timestamp(&second_ns), kSuccess);
  EXPECT_GE(second_ns, first_ns);
}

}  // namespace
}  // namespace aon::cupti
