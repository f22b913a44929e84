// What we take for granted of the real libcupti, as far as it can be asked without a driver.
// Skipped, and counted as skipped, where it is not installed.
#include <aon/external_id.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <set>
#include <span>
#include <string>

#include "plugins/cupti/calls.h"
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
    CuptiLibrary library;
    ASSERT_EQ(load(&cupti_, &library), nullptr);
    EXPECT_STREQ(library.remark, "");
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
  EXPECT_EQ(name_of(kDriverDomain, 539), "cuStreamBeginCapture_v2");
  EXPECT_EQ(name_of(kDriverDomain, 497), "cuStreamEndCapture");
  EXPECT_EQ(name_of(kRuntimeDomain, 315), "cudaStreamBeginCapture_v10000");
  EXPECT_EQ(name_of(kRuntimeDomain, 319), "cudaStreamEndCapture_v10000");
  EXPECT_EQ(name_of(kRuntimeDomain, 211), "cudaLaunchKernel_v7000");
  EXPECT_EQ(name_of(kRuntimeDomain, 505), "__cudaLaunchKernel_v13000");
  EXPECT_EQ(name_of(kRuntimeDomain, 506), "__cudaLaunchKernel_ptsz_v13000");
  EXPECT_EQ(name_of(kRuntimeDomain, 311), "cudaGraphLaunch_v10000");
}

/// "cuMemcpy3D_v2" and "cuMemcpy3D_v2_ptds" are one function, as are "cudaMemset_v3020" and
/// "cudaMemset_ptds_v7000".
std::string without_version_and_streams(std::string name, bool is_runtime) {
  const auto cut = [&name](size_t at) {
    if (at != std::string::npos) name.resize(at);
  };
  if (is_runtime) cut(name.rfind("_v"));
  cut(name.rfind("_pt"));
  return name;
}

TEST_F(Contract, has_all_calls_that_are_recorded_under_their_numbers) {
  const auto check = [this](int32_t domain, std::span<const Call> calls) {
    std::set<uint32_t> seen;
    for (const Call& call : calls) {
      const std::string name = name_of(domain, call.id);
      EXPECT_NE(name, "") << call.id;
      EXPECT_TRUE(seen.insert(call.id).second) << name << " twice";
      EXPECT_EQ(name.find("_pt"), std::string::npos) << name;
      if (call.per_thread_id == 0) continue;
      const std::string other = name_of(domain, call.per_thread_id);
      EXPECT_NE(other.find("_pt"), std::string::npos) << other;
      EXPECT_TRUE(seen.insert(call.per_thread_id).second) << other << " twice";
      EXPECT_EQ(without_version_and_streams(name, domain == kRuntimeDomain),
                without_version_and_streams(other, domain == kRuntimeDomain));
    }
  };
  check(kDriverDomain, kDriverCalls);
  check(kRuntimeDomain, kRuntimeCalls);
}

/// Of CUDA 13.0, by their names: none that copies, sets, launches or waits is forgotten.
TEST_F(Contract, has_no_other_calls_that_start_work_or_wait) {
  const auto check = [this](int32_t domain, std::span<const Call> calls, const char* prefix) {
    std::set<uint32_t> ours;
    for (const Call& call : calls) ours.insert({call.id, call.per_thread_id});
    std::set<std::string> known;
    for (const uint32_t id : ours)
      known.insert(without_version_and_streams(name_of(domain, id), domain == kRuntimeDomain));
    // Those of CUDA 3, which no library of today calls, and what is no work of a device.
    static const std::set<std::string> kOthers = {"cudaLaunch", "cudaLaunchHostFunc",
                                                  "cuLaunchHostFunc"};
    constexpr uint32_t kFirst = 200;  // of the driver: before it are functions without _v2
    for (uint32_t id = domain == kDriverDomain ? kFirst : 1; id < 1000; ++id) {
      const std::string name = name_of(domain, id);
      const auto begins_with = [&](const char* word) {
        return name.rfind(std::string(prefix) + word, 0) == 0;
      };
      if (!begins_with("Memcpy") && !begins_with("Memset") && !begins_with("Launch") &&
          !begins_with("GraphLaunch"))
        continue;
      const std::string plain = without_version_and_streams(name, domain == kRuntimeDomain);
      EXPECT_TRUE(known.count(plain) + kOthers.count(plain) != 0) << id << ' ' << name;
    }
  };
  check(kDriverDomain, kDriverCalls, "cu");
  check(kRuntimeDomain, kRuntimeCalls, "cuda");
}

TEST_F(Contract, calls_that_end_a_context_are_those_of_our_numbers) {
  std::set<std::string> names;
  for (const ContextEnd& end : kContextEnds)
    names.insert(name_of(end.is_driver_call ? kDriverDomain : kRuntimeDomain, end.id));
  const std::set<std::string> expected = {"cuCtxDestroy",
                                          "cuCtxDestroy_v2",
                                          "cuDevicePrimaryCtxRelease",
                                          "cuDevicePrimaryCtxRelease_v2",
                                          "cuDevicePrimaryCtxReset",
                                          "cuDevicePrimaryCtxReset_v2",
                                          "cudaDeviceReset_v3020",
                                          "cudaThreadExit_v3020"};
  EXPECT_EQ(names, expected);
}

/// Without a driver those that it knows are refused for that.
TEST_F(Contract, knows_the_kinds_of_external_ids_that_we_know_and_no_others) {
  constexpr Code kInvalidParameter = 1;
  using Push = Code (*)(uint32_t kind, uint64_t id);
  using Pop = Code (*)(uint32_t kind, uint64_t * id);
  void* library = dlopen(test::find_real_cupti(), RTLD_NOW | RTLD_LOCAL);
  const auto push =
      reinterpret_cast<Push>(dlsym(library, "cuptiActivityPushExternalCorrelationId"));
  const auto pop = reinterpret_cast<Pop>(dlsym(library, "cuptiActivityPopExternalCorrelationId"));
  ASSERT_NE(push, nullptr);
  ASSERT_NE(pop, nullptr);
  for (uint32_t kind = 0; kind < 100; ++kind) {
    uint64_t id = 0;
    EXPECT_EQ(push(kind, 5) != kInvalidParameter, is_external_kind(kind)) << kind;
    EXPECT_EQ(pop(kind, &id) != kInvalidParameter, is_external_kind(kind)) << kind;
  }
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
