#include "tools/cupti_holders.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "tools/gpu_tools.h"

namespace aon::tools {
namespace {

Check check_with(const std::map<std::string, std::string>& variables) {
  return check_cupti_environment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

bool says(const Check& check, const std::string& text) {
  return check.detail.find(text) != std::string::npos;
}

SeenProcess process(pid_t pid, const std::string& name, std::vector<std::string> libraries,
                    const std::string& arguments = "") {
  return {pid, geteuid(), name, arguments, std::move(libraries)};
}

TEST(CuptiEnvironment, is_free_where_nothing_says_otherwise) {
  const Check check = check_with({{"CUDA_INJECTION64_PATH", ""}, {"HOME", "/root"}});
  EXPECT_EQ(check.ability, Ability::kYes);
  EXPECT_TRUE(says(check, "nothing in this environment"));
  EXPECT_EQ(check.remedy, "");
}

TEST(CuptiEnvironment, is_free_where_pytorch_says_that_there_is_no_tool) {
  const Check check = check_with({{"CUDA_INJECTION64_PATH", "none"}});
  EXPECT_EQ(check.ability, Ability::kYes) << check.detail;
  EXPECT_EQ(check_with({{"NVTX_INJECTION64_PATH", "none"}}).ability, Ability::kLimited);
}

TEST(CuptiEnvironment, is_free_where_the_variables_name_ours) {
  const Check check = check_with({{"CUDA_INJECTION64_PATH", "/opt/aon/lib/libaon-cupti.so"},
                                  {"NVTX_INJECTION64_PATH", "/opt/aon/lib/libaon-nvtx.so"},
                                  {"LD_PRELOAD", "/opt/aon/lib/libaon.so"}});
  EXPECT_EQ(check.ability, Ability::kYes) << check.detail;
}

TEST(CuptiEnvironment, names_the_tool_of_an_injection_and_what_helps) {
  const Check check = check_with({{"CUDA_INJECTION64_PATH", "/opt/x/libToolsInjection64.so"}});
  EXPECT_EQ(check.ability, Ability::kNo);
  EXPECT_TRUE(says(check, "CUDA_INJECTION64_PATH is /opt/x/libToolsInjection64.so of Nsight "));
  EXPECT_NE(check.remedy.find("unset CUDA_INJECTION64_PATH"), std::string::npos);
}

TEST(CuptiEnvironment, names_an_injection_of_no_tool_that_is_known) {
  const Check check = check_with({{"CUDA_INJECTION64_PATH", "mine.so"}});
  EXPECT_EQ(check.ability, Ability::kNo);
  EXPECT_TRUE(says(check, "CUDA_INJECTION64_PATH is mine.so: CUDA loads that"));
}

TEST(CuptiEnvironment, tells_that_nvtx_goes_elsewhere) {
  const Check check = check_with({{"NVTX_INJECTION64_PATH", "/opt/x/other.so"}});
  EXPECT_EQ(check.ability, Ability::kLimited);
  EXPECT_TRUE(says(check, "NVTX ranges go there"));
  EXPECT_FALSE(says(check, "subscribe"));
}

TEST(CuptiEnvironment, names_preloads_of_known_tools_and_those_that_call_cupti) {
  char name[] = "/tmp/aon-preload-XXXXXX";
  close(mkstemp(name));
  std::ofstream(name) << "some bytes, cuptiSubscribe_v2, and others";
  const Check check = check_with(
      {{"LD_PRELOAD", "/a/libcudampitrace.so " + std::string(name)}, {"LD_AUDIT", "/b/libm.so"}});
  unlink(name);
  EXPECT_EQ(check.ability, Ability::kLimited);
  EXPECT_TRUE(says(check, "LD_PRELOAD has /a/libcudampitrace.so of Extrae"));
  EXPECT_TRUE(says(check, "LD_PRELOAD has " + std::string(name) + ", which may"));
  EXPECT_FALSE(says(check, "LD_AUDIT"));
}

TEST(CuptiEnvironment, leaves_preloads_alone_that_do_not_call_cupti) {
  EXPECT_EQ(check_with({{"LD_PRELOAD", "/lib/libjemalloc.so:/x/libTAU.so"}}).ability,
            Ability::kYes);
}

TEST(CuptiEnvironment, knows_tools_by_their_variables) {
  const std::map<std::string, std::string> on = {
      {"NSYS_PROFILING_SESSION_ID", "1"}, {"NV_NSIGHT_INJECTION_PORT_BASE", "49152"},
      {"KINETO_USE_DAEMON", "1"},         {"SCOREP_CUDA_ENABLE", "runtime,kernel"},
      {"HPCRUN_EVENT_LIST", "gpu=cuda"},  {"CALI_CONFIG", "cuda-activity-report"}};
  for (const auto& [name, value] : on) {
    const Check check = check_with({{name, value}});
    EXPECT_EQ(check.ability, Ability::kLimited) << name;
    EXPECT_TRUE(says(check, name + " in the environment")) << check.detail;
    EXPECT_FALSE(check.remedy.empty());
  }
  EXPECT_TRUE(says(check_with({{"KINETO_USE_DAEMON", "1"}}), "Kineto of PyTorch (for dynolog)"));
}

TEST(CuptiEnvironment, knows_tools_that_are_switched_off) {
  for (const char* value : {"", "0", "no", "No", "OFF", "false", "none"})
    EXPECT_EQ(check_with({{"SCOREP_CUDA_ENABLE", value}}).ability, Ability::kYes) << value;
  EXPECT_EQ(check_with({{"HPCRUN_EVENT_LIST", "REALTIME@1000"}}).ability, Ability::kYes);
}

TEST(CuptiEnvironment, tells_that_cupti_is_left_to_others_on_request) {
  EXPECT_TRUE(says(check_with({{"AON_CUPTI_MODE", "off"}}), "leaves it to others"));
}

TEST(CuptiProcesses, says_how_many_it_looked_at_and_what_is_closed) {
  ProcessLook look;
  look.read_count = 41;
  look.closed_count = 300;
  look.stuck = {77};
  look.unread_count = 5;
  const Check check = check_cupti_processes(look, "hidden ones");
  EXPECT_EQ(check.ability, Ability::kYes);
  EXPECT_EQ(check.detail,
            "none of 41 has loaded it; 300 more are closed to this user; PID 77 does not "
            "answer; no time was left for 5 more; hidden ones");
}

TEST(CuptiProcesses, names_the_likely_holder_and_says_no_more_than_is_loaded) {
  ProcessLook look;
  look.processes = {process(7, "app", {"libToolsInjection64.so", "libcupti.so.13"})};
  const Check check = check_cupti_processes(look, "");
  EXPECT_EQ(check.ability, Ability::kLimited);
  EXPECT_EQ(check.detail,
            "app (PID 7): loaded libToolsInjection64.so of Nsight Systems, libcupti.so.13");
  EXPECT_FALSE(check.remedy.empty());
}

TEST(CuptiProcesses, finds_nothing_wrong_with_ours_and_with_frameworks) {
  ProcessLook look;
  for (pid_t pid = 1; pid <= 8; ++pid)
    look.processes.push_back(
        process(pid, "python3", {"libaon-cupti.so", "libcupti.so.13", "libtorch_cpu.so"}));
  const Check check = check_cupti_processes(look, "");
  EXPECT_EQ(check.ability, Ability::kYes);
  EXPECT_EQ(check.detail,
            "8 processes python3 (PID 1, 2, 3, ...): loaded libaon-cupti.so of AON, "
            "libcupti.so.13, libtorch_cpu.so of PyTorch, for torch.profiler");
}

TEST(CuptiProcesses, leaves_out_those_without_cupti) {
  ProcessLook look;
  look.read_count = 2;
  look.processes = {process(7, "app", {"libhpcrun.so"}), process(8, "python3", {"libpapi.so.7"})};
  EXPECT_EQ(check_cupti_processes(look, "").detail, "none of 2 has loaded it");
  look.processes[0].libraries.emplace_back("libcupti.so.12");
  EXPECT_EQ(check_cupti_processes(look, "").ability, Ability::kLimited);
}

TEST(CuptiProcesses, names_users_that_are_others) {
  ProcessLook look;
  look.processes = {process(7, "app", {"libcupti.so.13"})};
  look.processes[0].user = geteuid() + 1;
  EXPECT_TRUE(says(check_cupti_processes(look, ""), "of user " + std::to_string(geteuid() + 1)));
}

TEST(CounterHolders, are_known_by_their_processes) {
  ProcessLook look;
  look.processes = {process(1, "nv-hostengine", {}), process(2, "ncu", {}),
                    process(3, "nvidia-cuda-mps", {}), process(4, "aon-gpu-counter", {})};
  const Check check = check_counter_holders(look, "");
  EXPECT_EQ(check.ability, Ability::kLimited);
  EXPECT_TRUE(says(check, "nv-hostengine (PID 1): DCGM, which has them before Hopper"));
  EXPECT_TRUE(says(check, "ncu (PID 2): Nsight Compute"));
  EXPECT_TRUE(says(check, "nvidia-cuda-mps (PID 3): MPS"));
  EXPECT_TRUE(says(check, "aon-gpu-counter (PID 4): AON"));
  EXPECT_NE(check.remedy.find("dcgmi profile --pause"), std::string::npos);
}

TEST(CounterHolders, need_their_option_or_their_module) {
  ProcessLook look;
  look.processes = {process(1, "nsys", {}, "nsys profile --trace=cuda app"),
                    process(2, "ncurses", {}), process(3, "app", {"libcupti.so.13"})};
  EXPECT_EQ(check_counter_holders(look, "").ability, Ability::kYes);
  look.processes[0].arguments = "nsys profile --gpu-metrics-devices=all app";
  EXPECT_TRUE(says(check_counter_holders(look, ""), "nsys (PID 1): Nsight Systems"));
  look.processes = {process(4, "exporter", {"libdcgmmoduleprofiling.so.4"})};
  EXPECT_TRUE(says(check_counter_holders(look, ""), "exporter (PID 4): DCGM"));
}

TEST(CounterHolders, are_said_to_be_seen_not_to_be_all) {
  const Check check = check_counter_holders({}, "hidden ones");
  EXPECT_EQ(check.ability, Ability::kYes);
  EXPECT_TRUE(says(check, "no process is seen"));
  EXPECT_TRUE(says(check, "hidden ones"));
}

TEST(CuptiHolders, have_a_line_each) {
  const std::vector<Check> checks = check_cupti_holders();
  ASSERT_EQ(checks.size(), 3u);
  for (const Check& check : checks) EXPECT_FALSE(check.detail.empty()) << check.name;
}

}  // namespace
}  // namespace aon::tools
