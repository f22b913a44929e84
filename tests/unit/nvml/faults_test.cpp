#include "plugins/nvml/faults.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "plugins/nvml/events.h"
#include "plugins/nvml/found.h"
#include "plugins/nvml/library.h"
#include "tests/unit/folder_fixture.h"

namespace aon::nvml {
namespace {

const std::vector<std::string> kTwo{"GPU 0", "GPU 1"};

node::StateText told(const Faults& faults) {
  node::StateText state;
  faults.tell(kTwo, &state);
  return state;
}

TEST(NvmlFaults, what_is_not_supported_is_asked_once_and_is_no_fault) {
  Faults faults;
  EXPECT_FALSE(faults.note(0, "ECC errors", kNotSupported));
  EXPECT_EQ(told(faults).state, AON_STATE_ON);
  EXPECT_EQ(told(faults).reason, "ECC errors of GPU 0: not supported, NVML error 3");
}

TEST(NvmlFaults, the_same_of_all_gpus_is_one_line) {
  Faults faults;
  for (const uint32_t gpu : {0u, 1u}) {
    faults.note(gpu, "NVLink", kNotSupported);
    faults.note(gpu, "ECC errors", kNotSupported);
  }
  EXPECT_EQ(told(faults).reason, "ECC errors, NVLink: not supported, NVML error 3");
}

TEST(NvmlFaults, a_missing_permission_has_a_remedy) {
  Faults faults;
  EXPECT_FALSE(faults.note(0, "GPM", kNoPermission));
  EXPECT_EQ(told(faults).state, AON_STATE_DEGRADED);
  EXPECT_NE(told(faults).remedy.find("NVreg_RestrictProfilingToAdminUsers=0"), std::string::npos);
  EXPECT_NE(told(faults).remedy.find("--cap-add SYS_ADMIN"), std::string::npos);
}

TEST(NvmlFaults, an_unknown_error_is_asked_again_and_then_not) {
  Faults faults;
  EXPECT_TRUE(faults.note(0, "power", kUnknown));
  EXPECT_TRUE(faults.note(0, "power", kUnknown));
  EXPECT_TRUE(faults.note(0, "power", kSuccess));
  EXPECT_TRUE(faults.note(0, "power", kUnknown));
  EXPECT_TRUE(faults.note(0, "power", kUnknown));
  EXPECT_FALSE(faults.note(0, "power", kUnknown));
  EXPECT_EQ(told(faults).state, AON_STATE_DEGRADED);
  EXPECT_EQ(told(faults).reason, "power of GPU 0: unknown error, NVML error 999");
}

TEST(NvmlFaults, what_passes_may_last_longer) {
  Faults faults;
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(faults.note(0, "power", kTimeout));
  EXPECT_FALSE(faults.note(0, "power", kTimeout));
}

TEST(NvmlFaults, the_share_of_readings_that_failed_is_told) {
  Faults faults;
  for (int i = 0; i < 300; ++i) {
    faults.note(0, "power", kSuccess);
    faults.note(1, "power", i % 3 == 0 ? kTimeout : kSuccess);
    faults.note(0, "NVLink", i % 100 == 0 ? kUnknown : kSuccess);
    faults.note(1, "NVLink", i % 100 == 1 ? kUnknown : kSuccess);
  }
  EXPECT_EQ(told(faults).state, AON_STATE_DEGRADED);
  EXPECT_EQ(told(faults).reason,
            "power of GPU 1: 30 % of the readings failed (timeout, NVML error 10); NVLink: 1 % of "
            "the readings failed (unknown error, NVML error 999)");
}

TEST(NvmlFaults, a_few_readings_that_failed_are_no_fault) {
  Faults faults;
  faults.note(0, "power", kTimeout);
  for (int i = 0; i < 300; ++i) faults.note(0, "power", kSuccess);
  EXPECT_EQ(told(faults).state, AON_STATE_ON);
  EXPECT_EQ(told(faults).reason,
            "power of GPU 0: less than 1 % of the readings failed (timeout, NVML error 10)");
}

TEST(NvmlFaults, a_lost_gpu_takes_its_queries_but_no_other_gpu) {
  Faults faults;
  EXPECT_FALSE(faults.note(1, "power", kGpuIsLost));
  EXPECT_TRUE(faults.is_lost(1));
  EXPECT_FALSE(faults.is_lost(0));
  EXPECT_EQ(told(faults).state, AON_STATE_DEGRADED);
  EXPECT_EQ(told(faults).reason, "GPU 1: the GPU is lost, NVML error 15");
  EXPECT_NE(told(faults).remedy.find("nvidia-smi"), std::string::npos);
}

TEST(NvmlXid, has_words_for_those_that_are_known) {
  EXPECT_EQ(xid_text(79), "Xid 79 (the GPU has fallen off the bus)");
  EXPECT_EQ(xid_text(1234), "Xid 1234");
}

class NvmlLibrary : public test::FolderFixture {
 protected:
  void device(const std::string& address, const char* vendor, const char* type) {
    std::filesystem::create_directories(path("sys/bus/pci/devices/" + address));
    std::ofstream(path("sys/bus/pci/devices/" + address + "/vendor")) << vendor << "\n";
    std::ofstream(path("sys/bus/pci/devices/" + address + "/class")) << type << "\n";
  }
};

TEST_F(NvmlLibrary, knows_a_gpu_without_a_driver_from_no_gpu) {
  const node::System system(folder_);
  EXPECT_FALSE(has_nvidia_device(system));
  device("0000:00:02.0", "0x8086", "0x030000");  // a GPU of Intel
  device("0000:05:00.0", "0x10de", "0x068000");  // a switch of NVLink
  EXPECT_FALSE(has_nvidia_device(system));
  device("0000:17:00.0", "0x10de", "0x030200");
  EXPECT_TRUE(has_nvidia_device(system));
}

TEST(NvmlUuid, is_read_or_refused) {
  uint8_t bytes[16] = {};
  ASSERT_TRUE(parse_uuid("GPU-5d2cFF00-1111-2222-3333-444444444409", bytes));
  EXPECT_EQ(bytes[0], 0x5d);
  EXPECT_EQ(bytes[2], 0xff);
  EXPECT_EQ(bytes[15], 0x09);
  for (const char* bad : {"", "GPU", "GPU-12", "GPU-zd2cff00-1111-2222-3333-444444444409",
                          "GPU-5d2cff00-1111-2222-3333-4444444444091"}) {
    EXPECT_FALSE(parse_uuid(bad, bytes)) << bad;
  }
}

}  // namespace
}  // namespace aon::nvml
