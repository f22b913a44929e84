// NVIDIA's libcupti itself, without a GPU and without a driver: our sets fit into one pass of the
// chips that they are for. Skipped, and counted, where the library is not.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "plugins/gpu_counters/host.h"
#include "tests/unit/sanitizer.h"

namespace aon::gpu_counters {
namespace {

/// Chip, what of the core it lacks or one pass does not take, and how many metrics it has beyond.
struct Chip {
  const char* name;
  std::vector<std::string> lacking;
  size_t more_count;
};
void PrintTo(const Chip& chip, std::ostream* out) { *out << chip.name; }

class GpuCountersContract : public testing::TestWithParam<Chip> {
 protected:
  void SetUp() override {
#ifdef AON_TEST_IS_SANITIZED
    GTEST_SKIP() << "NVIDIA's library loads another one with RTLD_DEEPBIND, and the sanitizer ends";
#endif
    const char* folders[] = {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/extras/CUPTI/lib64/",
                             "/usr/local/cuda/targets/x86_64-linux/lib/"};
    for (const std::string folder : folders) {
      // CUPTI looks for it by its bare name; one that is loaded is found.
      if (dlopen((folder + "libnvperf_host.so").c_str(), RTLD_NOW) == nullptr) continue;
      const std::string path = folder + "libcupti.so.13";
      if (dlopen(path.c_str(), RTLD_NOW) == nullptr) continue;
      setenv("AON_CUPTI_LIB", path.c_str(), 1);
      ASSERT_FALSE(library_.open()) << "a function is missing";
      return;
    }
    GTEST_SKIP() << "NVIDIA's libcupti.so.13 and libnvperf_host.so are not here";
  }

  Library library_;
};

TEST_P(GpuCountersContract, core_is_one_pass) {
  Host host(library_.call());
  const std::span<const Metric> core = metric_set("core");
  const Problem problem = host.configure(GetParam().name, core, nullptr);
  ASSERT_FALSE(problem) << problem.reason;
  EXPECT_FALSE(host.config().empty());
  EXPECT_LT(host.config().size(), 65536u);
  EXPECT_EQ(host.metrics().size() + host.left_out().size(), core.size());
  EXPECT_EQ(host.names()[0], core[0].name);
  EXPECT_EQ(host.left_out(), GetParam().lacking);
}

TEST_P(GpuCountersContract, wide_is_one_pass_and_has_the_core) {
  Host host(library_.call());
  const Problem problem = host.configure(GetParam().name, metric_set("wide"), nullptr);
  ASSERT_FALSE(problem) << problem.reason;
  Host core(library_.call());
  ASSERT_FALSE(core.configure(GetParam().name, metric_set("core"), nullptr));
  ASSERT_EQ(host.metrics().size(), core.metrics().size() + GetParam().more_count);
  for (size_t i = 0; i < core.metrics().size(); ++i) {
    EXPECT_STREQ(host.metrics()[i].series, core.metrics()[i].series);
  }
}

// GB10x has no counters of PCIe, chips of graphics cards but GA102 none of links and clocks either.
// What is beyond the core has these names on Hopper alone.
const std::vector<std::string> kNone;
const std::vector<std::string> kPcie = {"pcie-received-rate", "pcie-sent-rate"};
const std::vector<std::string> kLinks = {
    "nvlink-received-rate", "nvlink-sent-rate", "clock-gpc", "clock-sys",
    "pcie-received-rate",   "pcie-sent-rate"};

std::vector<std::string> joined(std::vector<std::string> first,
                                const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

INSTANTIATE_TEST_SUITE_P(Each, GpuCountersContract,
                         testing::Values(Chip{"TU102",
                                              joined({"tensor-active", "sm-occupancy",
                                                      "dram-read-active", "dram-write-active"},
                                                     kLinks),
                                              0},
                                         Chip{"GA100", kNone, 0}, Chip{"GA102", kNone, 0},
                                         Chip{"AD102", kLinks, 0}, Chip{"GH100", kNone, 16},
                                         Chip{"GB100", kPcie, 0}, Chip{"GB102", kPcie, 0},
                                         Chip{"GB110", kPcie, 0},
                                         Chip{"GB202", joined(kLinks, {"sm-occupancy"}), 0}),
                         [](const auto& chip) { return std::string(chip.param.name); });

class GpuCountersRefusal : public GpuCountersContract {};
TEST_P(GpuCountersRefusal, of_a_chip_is_told) {
  Host host(library_.call());
  const Problem problem = host.configure(GetParam().name, metric_set("core"), nullptr);
  EXPECT_TRUE(problem);
  EXPECT_NE(problem.remedy, "");
}

INSTANTIATE_TEST_SUITE_P(Each, GpuCountersRefusal,
                         testing::Values(Chip{"GV100", {}, 0}, Chip{"NOCHIP", {}, 0}),
                         [](const auto& chip) { return std::string(chip.param.name); });

}  // namespace
}  // namespace aon::gpu_counters
