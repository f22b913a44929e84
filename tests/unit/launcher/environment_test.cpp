#include "launcher/environment.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "launcher/nccl_conf.h"
#include "launcher/runtime_folder.h"
#include "tests/unit/folder_fixture.h"

namespace aon::launcher {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

const std::string kOurs = "/i/lib/libaon.so:/i/lib/libaon-mpi.so";

class ProgramVariables : public test::FolderFixture {
 protected:
  ProgramVariables() {
    files_.mpi_library = "/i/lib/libaon-mpi.so";
    files_.runtime_library = "/i/lib/libaon.so";
    files_.nccl_plugin = "/i/lib/libnccl-profiler-aon.so";
  }
  std::string value(const std::string& name, const std::string& socket = "/run/s") {
    const ProgramEnvironment result = make(socket);
    for (const Variable& variable : result.variables) {
      if (variable.name == name) return variable.value;
    }
    return "(not set)";
  }
  ProgramEnvironment make(const std::string& socket = "/run/s") {
    return program_environment(options_, files_, socket, "/job",
                               [&](const char* name) -> const char* {
                                 const auto found = set_.find(name);
                                 return found == set_.end() ? nullptr : found->second.c_str();
                               });
  }
  Options options_;
  Installation files_;
  std::map<std::string, std::string> set_;
};

TEST_F(ProgramVariables, name_library_socket_and_output) {
  EXPECT_EQ(value("LD_PRELOAD"), kOurs);
  EXPECT_EQ(value("AON_SOCKET"), "/run/s");
  EXPECT_EQ(value("AON_OUTPUT"), "/job");
  EXPECT_EQ(value("AON_SOCKET", ""), "(not set)");
}

TEST_F(ProgramVariables, ask_for_timers_only_when_the_user_does) {
  options_.sampling_hz = 97;
  EXPECT_EQ(value("AON_SAMPLING_TIMER"), "(not set)");
  options_.sampling_fallback = "timer";
  EXPECT_EQ(value("AON_SAMPLING_TIMER"), "97");
  options_.without = {"sampling"};
  EXPECT_EQ(value("AON_SAMPLING_TIMER"), "(not set)");
  options_.without = {};
  options_.sampling_hz = 0;
  EXPECT_EQ(value("AON_SAMPLING_TIMER"), "(not set)");
}

TEST_F(ProgramVariables, keep_the_users_preload_first) {
  set_["LD_PRELOAD"] = "/u/tool.so:/u/malloc.so";
  EXPECT_EQ(value("LD_PRELOAD"), "/u/tool.so:/u/malloc.so:" + kOurs);
}

TEST_F(ProgramVariables, name_the_library_once) {
  set_["LD_PRELOAD"] = "/u/tool.so /i/lib/libaon-mpi.so";
  EXPECT_EQ(value("LD_PRELOAD"), "/u/tool.so:" + kOurs);
  set_["LD_PRELOAD"] = ":/i/lib/libaon-mpi.so:: /u/tool.so";
  EXPECT_EQ(value("LD_PRELOAD"), "/u/tool.so:" + kOurs);
  set_["LD_PRELOAD"] = kOurs + ":/u/tool.so";
  EXPECT_EQ(value("LD_PRELOAD"), "/u/tool.so:" + kOurs);
}

TEST_F(ProgramVariables, put_us_before_what_wraps_mpi) {
  const std::string tool = path("tool.so");
  std::ofstream(tool, std::ios::binary) << std::string("ELF\0PMPI_Init\0", 14);
  set_["LD_PRELOAD"] = "/u/malloc.so:" + tool + ":/u/last.so:/i/lib/libaon-mpi.so";
  EXPECT_EQ(value("LD_PRELOAD"), "/u/malloc.so:" + kOurs + ":" + tool + ":/u/last.so");
  std::ofstream(tool, std::ios::binary) << std::string("ELF\0malloc_MPI_\0", 16);
  EXPECT_EQ(value("LD_PRELOAD"), "/u/malloc.so:" + tool + ":/u/last.so:" + kOurs);
}

TEST_F(ProgramVariables, put_us_before_what_wraps_mpi_wherever_the_loader_finds_it) {
  std::filesystem::create_directory(path("lib"));
  set_["LD_LIBRARY_PATH"] = "/none:" + path("lib") + ":/u/lib";
  set_["LD_PRELOAD"] = "libtool.so:/u/last.so";
  std::ofstream(path("lib/libtool.so"), std::ios::binary) << std::string("ELF\0PMPI_Init\0", 14);
  EXPECT_EQ(value("LD_PRELOAD"), kOurs + ":libtool.so:/u/last.so");
  std::ofstream(path("lib/libtool.so"), std::ios::binary) << "ELF";
  EXPECT_EQ(value("LD_PRELOAD"), "libtool.so:/u/last.so:" + kOurs);
  set_["LD_PRELOAD"] = "libm.so.6";
  EXPECT_EQ(value("LD_PRELOAD"), "libm.so.6:" + kOurs) << "by the loader's cache";
}

TEST_F(ProgramVariables, put_us_before_what_may_wrap_mpi) {
  for (const std::string name : {"libnone.so", "$ORIGIN/libtool.so", "/u/$LIB/libtool.so"}) {
    set_["LD_PRELOAD"] = "/u/first.so:" + name;
    EXPECT_EQ(value("LD_PRELOAD"), "/u/first.so:" + kOurs + ":" + name);
  }
}

TEST_F(ProgramVariables, put_a_sanitizer_first_wherever_it_is) {
  for (const std::string name : {"/usr/$LIB/libasan.so.8", "libclang_rt.asan-x86_64.so"}) {
    set_["LD_PRELOAD"] = name;
    EXPECT_EQ(value("LD_PRELOAD"), name + ":" + kOurs);
  }
}

TEST_F(ProgramVariables, let_asan_stand_behind_us) {
  EXPECT_EQ(value("ASAN_OPTIONS"), "verify_asan_link_order=0");
  set_["ASAN_OPTIONS"] = "detect_leaks=0";
  EXPECT_EQ(value("ASAN_OPTIONS"), "verify_asan_link_order=0:detect_leaks=0");
  set_["LD_PRELOAD"] = "/i/lib/libaon-mpi.so";
  EXPECT_EQ(value("ASAN_OPTIONS"), "verify_asan_link_order=0:detect_leaks=0") << "ours already";
  set_["ASAN_OPTIONS"] = "verify_asan_link_order=1";
  EXPECT_EQ(value("ASAN_OPTIONS"), "(not set)");
}

TEST_F(ProgramVariables, leave_asans_word_on_the_users_preload) {
  const std::string tool = path("tool.so");
  std::ofstream(tool, std::ios::binary) << std::string("ELF\0PMPI_Init\0", 14);
  for (const std::string& users : {std::string("/u/tool.so"), tool}) {
    set_["LD_PRELOAD"] = users;
    EXPECT_EQ(value("ASAN_OPTIONS"), "(not set)") << users;
  }
}

TEST_F(ProgramVariables, leave_options_of_asan_that_are_several_lines_alone) {
  set_["ASAN_OPTIONS"] = "detect_leaks=0\nverbosity=1";
  EXPECT_EQ(value("ASAN_OPTIONS"), "(not set)");
}

TEST_F(ProgramVariables, that_a_script_took_come_back_once) {
  const auto lost = [&] {
    std::string text;
    for (const Variable& variable : lost_variables(files_, [&](const char* name) -> const char* {
           const auto found = set_.find(name);
           return found == set_.end() ? nullptr : found->second.c_str();
         }))
      text += variable.name + "=" + variable.value + "\n";
    return text;
  };
  const std::string asan = "ASAN_OPTIONS=verify_asan_link_order=0\n";
  const std::string plugin = "NCCL_PROFILER_PLUGIN=" + files_.nccl_plugin + "\n";
  EXPECT_EQ(lost(), "LD_PRELOAD=" + kOurs + "\n" + asan + plugin);
  set_["LD_PRELOAD"] = "/u/tool.so";
  EXPECT_EQ(lost(), "LD_PRELOAD=/u/tool.so:" + kOurs + "\n" + plugin);
  set_["LD_PRELOAD"] = "/other/lib/libaon.so:/other/lib/libaon-mpi.so";
  EXPECT_EQ(lost(), "") << "our plugin is none for another runtime";
  set_["NCCL_PROFILER_PLUGIN"] = "/other/lib/libnccl-profiler-aon.so";
  EXPECT_EQ(lost(), "");
}

/// What the outer aon-run was told to leave out is not recorded by an inner one either.
TEST_F(ProgramVariables, that_were_left_out_do_not_come_back) {
  EXPECT_EQ(value("AON_LEFT_OUT"), "(not set)");
  options_.without = {"nccl", "mpi", "perf"};
  EXPECT_EQ(value("AON_LEFT_OUT"), "mpi,nccl");
  set_["AON_LEFT_OUT"] = "mpi,nccl";
  const auto lost = lost_variables(files_, [&](const char* name) -> const char* {
    const auto found = set_.find(name);
    return found == set_.end() ? nullptr : found->second.c_str();
  });
  ASSERT_EQ(lost.size(), 2u);
  EXPECT_EQ(lost[0].value, "/i/lib/libaon.so");
  EXPECT_EQ(lost[1].name, "ASAN_OPTIONS");
}

/// A rank may have another by the time of its end, and under no other launcher is it asked for.
TEST_F(ProgramVariables, name_the_standard_error_of_a_launch_by_hydra) {
  EXPECT_EQ(value("AON_STDERR"), "(not set)");
  set_["AON_STDERR"] = "1:2";
  EXPECT_THAT(make().removed, ElementsAre("AON_STDERR"));
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  set_["PMI_FD"] = std::to_string(sockets[0]);
  struct stat status {};
  ASSERT_EQ(fstat(STDERR_FILENO, &status), 0);
  EXPECT_EQ(value("AON_STDERR"), fmt::format("{}:{}", status.st_dev, status.st_ino));
  for (const int fd : sockets) close(fd);
}

TEST_F(ProgramVariables, leave_the_users_plugin_alone) {
  EXPECT_EQ(value("NCCL_PROFILER_PLUGIN"), files_.nccl_plugin);
  EXPECT_EQ(value("CUDA_INJECTION64_PATH"), "(not set)") << "not installed";
  set_["NCCL_PROFILER_PLUGIN"] = "theirs";
  EXPECT_EQ(value("NCCL_PROFILER_PLUGIN"), "(not set)");
  EXPECT_THAT(make().left_alone, ElementsAre(LeftAlone{"nccl", "NCCL_PROFILER_PLUGIN"}));
}

/// Which is how PyTorch says that there is no tool.
TEST_F(ProgramVariables, take_none_for_no_tool_of_cuda) {
  files_.cuda_injection = "/i/lib/libaon-cupti.so";
  files_.nvtx_injection = "/i/lib/libaon-nvtx.so";
  set_["CUDA_INJECTION64_PATH"] = "none";
  EXPECT_EQ(value("CUDA_INJECTION64_PATH"), files_.cuda_injection);
  EXPECT_THAT(make().left_alone, IsEmpty());
  set_["NVTX_INJECTION64_PATH"] = "none";
  set_["NCCL_PROFILER_PLUGIN"] = "none";
  EXPECT_THAT(make().left_alone, ElementsAre(LeftAlone{"nvtx", "NVTX_INJECTION64_PATH"},
                                             LeftAlone{"nccl", "NCCL_PROFILER_PLUGIN"}));
}

/// As NCCL takes them: a name, or a path, of a link, or of another installation's.
TEST_F(ProgramVariables, know_our_plugin_by_every_name) {
  std::filesystem::create_directory(path("lib"));
  files_.nccl_plugin = path("lib/libnccl-profiler-aon.so");
  std::ofstream(files_.nccl_plugin) << "ELF";
  std::filesystem::create_symlink(files_.nccl_plugin, path("link.so"));
  for (const std::string& name :
       {files_.nccl_plugin, std::string("aon"), std::string("libnccl-profiler-aon.so"),
        path("lib/../lib/libnccl-profiler-aon.so"), path("link.so"),
        std::string("/other/lib/libnccl-profiler-aon.so")}) {
    set_["NCCL_PROFILER_PLUGIN"] = name;
    EXPECT_THAT(make().left_alone, IsEmpty()) << name;
    EXPECT_EQ(value("NCCL_PROFILER_PLUGIN"),
              name == files_.nccl_plugin ? "(not set)" : files_.nccl_plugin)
        << name;
  }
  for (const char* name : {"aon2", "./aon", "/u/aon", "libaon.so", "libnccl-profiler-aon.so.1"}) {
    set_["NCCL_PROFILER_PLUGIN"] = name;
    EXPECT_THAT(make().left_alone, ElementsAre(LeftAlone{"nccl", "NCCL_PROFILER_PLUGIN"})) << name;
  }
}

TEST_F(ProgramVariables, know_our_plugin_where_it_is_preloaded) {
  for (const char* name : {"STATIC_PLUGIN", "static"}) {
    set_["NCCL_PROFILER_PLUGIN"] = name;
    set_["LD_PRELOAD"] = "/u/libother.so";
    EXPECT_THAT(make().left_alone, ElementsAre(LeftAlone{"nccl", "NCCL_PROFILER_PLUGIN"})) << name;
    set_["LD_PRELOAD"] = "/u/libother.so:" + files_.nccl_plugin;
    EXPECT_THAT(make().left_alone, IsEmpty()) << name;
    EXPECT_EQ(value("NCCL_PROFILER_PLUGIN"), files_.nccl_plugin);
  }
}

TEST_F(ProgramVariables, know_our_plugin_in_nccls_own_file) {
  set_["NCCL_CONF_FILE"] = path("nccl.conf");
  std::ofstream(path("nccl.conf")) << "NCCL_PROFILER_PLUGIN=aon\n";
  EXPECT_THAT(make().left_alone, IsEmpty());
  EXPECT_EQ(value("NCCL_PROFILER_PLUGIN"), files_.nccl_plugin);
}

TEST_F(ProgramVariables, do_not_wait_for_a_pipe_in_place_of_nccls_own_file) {
  set_["NCCL_CONF_FILE"] = path("nccl.conf");
  ASSERT_EQ(mkfifo(path("nccl.conf").c_str(), 0600), 0);
  EXPECT_EQ(value("NCCL_PROFILER_PLUGIN"), files_.nccl_plugin);
}

TEST_F(ProgramVariables, leave_the_plugin_alone_that_nccls_own_file_names) {
  const std::string file = path("nccl.conf");
  set_["NCCL_CONF_FILE"] = file;
  std::ofstream(file) << "# NCCL_PROFILER_PLUGIN=none\nNCCL_PROFILER_PLUGINS=3\nNCCL_DEBUG=WARN\n";
  EXPECT_EQ(value("NCCL_PROFILER_PLUGIN"), files_.nccl_plugin);
  std::ofstream(file, std::ios::app) << "NCCL_PROFILER_PLUGIN=inspector";
  EXPECT_EQ(value("NCCL_PROFILER_PLUGIN"), "(not set)");
  EXPECT_THAT(make().left_alone, ElementsAre(LeftAlone{"nccl", "NCCL_PROFILER_PLUGIN in " + file}));
  set_["NCCL_PROFILER_PLUGIN"] = "";
  EXPECT_EQ(value("NCCL_PROFILER_PLUGIN"), files_.nccl_plugin) << "which overrules the file";
  set_.erase("NCCL_PROFILER_PLUGIN");
  options_.without = {"nccl"};
  EXPECT_THAT(make().left_alone, IsEmpty());
}

using NcclFiles = test::FolderFixture;

TEST_F(NcclFiles, the_users_comes_before_the_systems_and_its_first_line_counts) {
  std::map<std::string, std::string> set{{"HOME", folder_}};
  const auto get = [&](const char* name) -> const char* {
    const auto found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  };
  const std::string system = path("system.conf");
  const std::string own = path(".nccl.conf");
  EXPECT_EQ(nccl_file_that_sets("A", get, system).file, "");
  std::ofstream(system) << "A=1\n";
  EXPECT_EQ(nccl_file_that_sets("A", get, system).file, system);
  std::ofstream(own) << "A=\nA=2\n";
  EXPECT_EQ(nccl_file_that_sets("A", get, system).file, "") << "the user wants none";
  std::ofstream(own) << "A=2";
  EXPECT_EQ(nccl_file_that_sets("A", get, system).file, own);
  set["NCCL_CONF_FILE"] = path("none");
  EXPECT_EQ(nccl_file_that_sets("A", get, system).file, system);
}

TEST_F(ProgramVariables, tell_nccl_its_level_unless_it_is_the_usual_one) {
  EXPECT_EQ(value("AON_NCCL_LEVEL"), "(not set)");
  options_.nccl_level = "api";
  EXPECT_EQ(value("AON_NCCL_LEVEL"), "(not set)");
  options_.nccl_level = "gpu";
  EXPECT_EQ(value("AON_NCCL_LEVEL"), "gpu");
  options_.without = {"nccl"};
  EXPECT_EQ(value("AON_NCCL_LEVEL"), "(not set)");
}

TEST_F(ProgramVariables, tell_cupti_what_is_not_as_usual) {
  const std::map<std::string, std::string> usual{{"AON_CUPTI_MODE", "exclusive"},
                                                 {"AON_CUPTI_GRAPH", "graph"},
                                                 {"AON_CUPTI_CALLS", "1"},
                                                 {"AON_CUPTI_MEMORY", "256"}};
  options_.cupti_mode = "exclusive";
  options_.cupti_graph = "graph";
  options_.cupti_memory_mib = 256;
  for (const auto& [name, text] : usual) EXPECT_EQ(value(name), "(not set)") << name;
  set_ = {{"AON_CUPTI_MODE", "off"},
          {"AON_CUPTI_GRAPH", "node"},
          {"AON_CUPTI_CALLS", "0"},
          {"AON_CUPTI_MEMORY", "8"}};
  for (const auto& [name, text] : usual) EXPECT_EQ(value(name), text) << "of an outer launch";
  set_ = usual;
  for (const auto& [name, text] : usual) EXPECT_EQ(value(name), "(not set)") << name;
  options_.cupti_mode = "yield";
  options_.cupti_graph = "node";
  options_.cupti_calls = false;
  options_.cupti_memory_mib = 8;
  set_ = {};
  EXPECT_EQ(value("AON_CUPTI_MODE"), "yield");
  EXPECT_EQ(value("AON_CUPTI_GRAPH"), "node");
  EXPECT_EQ(value("AON_CUPTI_CALLS"), "0");
  EXPECT_EQ(value("AON_CUPTI_MEMORY"), "8");
  options_.without = {"cupti"};
  for (const auto& [name, text] : usual) EXPECT_EQ(value(name), "(not set)") << name;
}

TEST_F(ProgramVariables, say_what_the_options_say_where_the_environment_says_something_else) {
  options_.attach_ms = 20;
  options_.budget_percent = 1;
  options_.memory_bytes = 8u << 20;
  options_.nccl_level = "api";
  for (const char* name : {"AON_ATTACH_MS", "AON_BUDGET", "AON_MEMORY", "AON_NCCL_LEVEL"})
    EXPECT_EQ(value(name), "(not set)") << name;
  set_ = {{"AON_ATTACH_MS", "500"},
          {"AON_BUDGET", "3"},
          {"AON_MEMORY", "64MiB"},
          {"AON_NCCL_LEVEL", "gpu"}};
  EXPECT_EQ(value("AON_ATTACH_MS"), "20");
  EXPECT_EQ(value("AON_BUDGET"), "1");
  EXPECT_EQ(value("AON_MEMORY"), "8388608");
  EXPECT_EQ(value("AON_NCCL_LEVEL"), "api");
}

TEST_F(ProgramVariables, tell_a_process_without_an_agent_how_much_memory_it_may_take) {
  options_.memory_bytes = 2u << 20;
  EXPECT_EQ(value("AON_MEMORY"), "2097152");
}

TEST_F(ProgramVariables, follow_the_choice_of_providers) {
  options_.without = {"mpi", "nccl"};
  EXPECT_EQ(value("LD_PRELOAD"), "/i/lib/libaon.so");
  EXPECT_EQ(value("NCCL_PROFILER_PLUGIN"), "(not set)");
  options_.without = {};
  options_.providers = {"mpi"};
  EXPECT_EQ(value("LD_PRELOAD"), kOurs);
  EXPECT_EQ(value("NCCL_PROFILER_PLUGIN"), "(not set)");
  EXPECT_THAT(make().left_alone, IsEmpty());
}

TEST_F(ProgramVariables, of_an_outer_launch_go_where_this_one_has_none) {
  EXPECT_THAT(make().removed, IsEmpty());
  set_ = {{"AON_COUNTERS", "0/0x0/0x0/0x0/6/cycles"},
          {"AON_SAMPLING_TIMER", "97"},
          {"AON_LEFT_OUT", "mpi"}};
  EXPECT_THAT(make().removed, ElementsAre("AON_COUNTERS", "AON_SAMPLING_TIMER", "AON_LEFT_OUT"));
  options_.without = {"nccl"};
  EXPECT_EQ(value("AON_LEFT_OUT"), "nccl");
  EXPECT_THAT(make().removed, ElementsAre("AON_COUNTERS", "AON_SAMPLING_TIMER"));
}

/// As a batch script under TaskProlog has them, which leaves a provider out of a step.
TEST_F(ProgramVariables, of_our_plugins_go_where_their_provider_is_left_out) {
  set_ = {{"CUDA_INJECTION64_PATH", "/i/lib/libaon-cupti.so"},
          {"NVTX_INJECTION64_PATH", "/other/lib/libaon-nvtx.so"},
          {"NCCL_PROFILER_PLUGIN", "aon"}};
  options_.without = {"cupti", "nvtx", "nccl"};
  const std::vector<std::string> names{"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH",
                                       "NCCL_PROFILER_PLUGIN"};
  EXPECT_EQ(make().removed, names) << "also where this installation has none";
  files_.cuda_injection = "/i/lib/libaon-cupti.so";
  files_.nvtx_injection = "/i/lib/libaon-nvtx.so";
  EXPECT_EQ(make().removed, names);
  options_.without = {"nvtx"};
  EXPECT_THAT(make().removed, ElementsAre("NVTX_INJECTION64_PATH"));
  options_.without = {"cupti", "nvtx", "nccl"};
  set_ = {{"CUDA_INJECTION64_PATH", "none"},
          {"NVTX_INJECTION64_PATH", "/u/libtool.so"},
          {"NCCL_PROFILER_PLUGIN", "theirs"}};
  EXPECT_THAT(make().removed, IsEmpty()) << "the user's";
}

TEST_F(ProgramVariables, name_no_library_of_another_installation) {
  set_["LD_PRELOAD"] = "/other/lib/libaon.so:/u/tool.so:/other/lib/libaon-mpi.so";
  EXPECT_EQ(value("LD_PRELOAD"), "/u/tool.so:" + kOurs);
}

TEST_F(ProgramVariables, of_plugins_of_another_installation_go_where_this_one_has_none) {
  set_["CUDA_INJECTION64_PATH"] = "/other/lib/libaon-cupti.so";
  files_.cuda_injection.clear();
  EXPECT_THAT(make().removed, testing::Contains("CUDA_INJECTION64_PATH"));
}

class OuterLaunch : public testing::Test {
 protected:
  ProgramEnvironment taken_back() {
    return without_outer_launch([&](const char* name) -> const char* {
      const auto found = set_.find(name);
      return found == set_.end() ? nullptr : found->second.c_str();
    });
  }
  std::map<std::string, std::string> set_{
      {"LD_PRELOAD", kOurs},     {"AON_SOCKET", "/run/door"},
      {"AON_OUTPUT", "/job"},    {"AON_OUTPUT_GAVE", "/job"},
      {"AON_DOOR", "/run/door"}, {"AON_DOOR_GAVE", "/job"},
      {"AON_LEFT_OUT", "nvtx"},  {"CUDA_INJECTION64_PATH", "/i/lib/libaon-cupti.so"},
      {"AON_MEMORY", "16777216"}};
};

TEST_F(OuterLaunch, is_taken_back_whole) {
  const ProgramEnvironment result = taken_back();
  EXPECT_TRUE(result.variables.empty());
  EXPECT_THAT(result.removed, UnorderedElementsAre("LD_PRELOAD", "AON_SOCKET", "AON_OUTPUT",
                                                   "AON_OUTPUT_GAVE", "AON_DOOR", "AON_DOOR_GAVE",
                                                   "AON_LEFT_OUT", "CUDA_INJECTION64_PATH"));
}

TEST_F(OuterLaunch, leaves_the_users_options_of_a_sanitizer) {
  set_["ASAN_OPTIONS"] = "verify_asan_link_order=0:detect_leaks=0";
  const ProgramEnvironment result = taken_back();
  ASSERT_EQ(result.variables.size(), 1u);
  EXPECT_EQ(result.variables[0].value, "detect_leaks=0");
  set_["ASAN_OPTIONS"] = "verify_asan_link_order=0";
  EXPECT_THAT(taken_back().removed, testing::Contains("ASAN_OPTIONS"));
}

TEST_F(OuterLaunch, leaves_what_is_the_users) {
  set_["LD_PRELOAD"] = "/u/first.so:" + kOurs + " /u/last.so";
  set_["AON_OUTPUT"] = "/of/the/user";
  set_["CUDA_INJECTION64_PATH"] = "/u/tool.so";
  ProgramEnvironment result = taken_back();
  ASSERT_EQ(result.variables.size(), 1u);
  EXPECT_EQ(result.variables[0].name, "LD_PRELOAD");
  EXPECT_EQ(result.variables[0].value, "/u/first.so:/u/last.so");
  EXPECT_THAT(result.removed, UnorderedElementsAre("AON_SOCKET", "AON_OUTPUT_GAVE", "AON_DOOR",
                                                   "AON_DOOR_GAVE", "AON_LEFT_OUT"));
  set_["LD_PRELOAD"] = "/u/first.so /u/last.so";
  EXPECT_TRUE(taken_back().variables.empty());
  EXPECT_EQ(taken_back().removed, result.removed);
}

TEST_F(OuterLaunch, gives_the_users_folder_back) {
  set_["AON_DOOR_OUTPUT"] = "/asked/for";
  const ProgramEnvironment result = taken_back();
  ASSERT_EQ(result.variables.size(), 1u);
  EXPECT_EQ(result.variables[0].name, "AON_OUTPUT");
  EXPECT_EQ(result.variables[0].value, "/asked/for");
  EXPECT_THAT(result.removed, Contains("AON_DOOR_OUTPUT"));
  EXPECT_THAT(result.removed, Not(Contains("AON_OUTPUT")));
}

/// The user's own aon-run, where the site has AON switched off: srun passes on what it has set.
TEST_F(OuterLaunch, of_an_aon_run_alone_is_the_users_wish) {
  set_.erase("AON_DOOR");
  set_.erase("AON_DOOR_GAVE");
  EXPECT_TRUE(taken_back().variables.empty());
  EXPECT_THAT(taken_back().removed, IsEmpty());
}

TEST_F(ProgramVariables, reach_a_folder_with_spaces_through_a_link) {
  EXPECT_EQ(*preloadable_folder("/plain/lib"), "/plain/lib");
  const std::string spaced = path("a b:c");
  std::filesystem::create_directory(spaced);
  setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
  const auto folder = preloadable_folder(spaced);
  const auto again = preloadable_folder(spaced);
  unsetenv("XDG_RUNTIME_DIR");
  ASSERT_TRUE(folder.has_value()) << folder.error().message;
  EXPECT_EQ(folder->find_first_of(": "), std::string::npos);
  EXPECT_TRUE(std::filesystem::equivalent(*folder, spaced));
  EXPECT_EQ(*again, *folder);
}

}  // namespace
}  // namespace aon::launcher
