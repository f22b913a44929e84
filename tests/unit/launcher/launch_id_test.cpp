#include "launcher/launch_id.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "core/base/containers.h"
#include "core/base/file.h"
#include "core/base/lease.h"

namespace aon::launcher {
namespace {

using Variables = std::map<std::string, std::string>;

Launch launch_with(const Variables& variables) {
  return find_launch([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string identity_of(pid_t pid) {
  return host_of_pids() + "-" + std::to_string(pid) + "-" +
         std::to_string(process_start_time_ticks(pid));
}

TEST(LaunchId, is_the_namespace_of_pmix) {
  const Launch launch = launch_with({{"PMIX_NAMESPACE", "prterun-n1-12@1"},
                                     {"SLURM_JOB_ID", "7"},
                                     {"SLURM_STEP_ID", "0"},
                                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                     {"OMPI_COMM_WORLD_SIZE", "8"}});
  EXPECT_EQ(launch.id, "prterun-n1-12@1");
  EXPECT_TRUE(launch.has_launcher);
  EXPECT_EQ(launch.local_rank_count, 4u);
  EXPECT_EQ(launch.world_size, 8u);
}

TEST(LaunchId, never_leaves_the_folder) {
  EXPECT_EQ(launch_with({{"PMIX_NAMESPACE", "../a/b c"}}).id, ".._a_b_c");
  EXPECT_LE(launch_with({{"PMIX_NAMESPACE", std::string(5000, 'x')}}).id.size(), 96u);
}

TEST(LaunchId, is_the_step_of_slurm) {
  const Launch launch = launch_with({{"SLURM_JOB_ID", "7"},
                                     {"SLURM_STEP_ID", "3"},
                                     {"SLURM_NODEID", "2"},
                                     {"SLURM_STEP_TASKS_PER_NODE", "4(x2),3"},
                                     {"SLURM_STEP_NUM_TASKS", "11"}});
  EXPECT_EQ(launch.id, "7.3");
  EXPECT_EQ(launch.local_rank_count, 3u);
  EXPECT_EQ(launch.world_size, 11u);
}

/// A process with hydra's command line.
class Proxy {
 public:
  explicit Proxy(const char* port) : pid_(fork()) {
    if (pid_ != 0) return;
    execl("/bin/sh", "hydra_pmi_proxy", "-c", "while :; do sleep 9; done", "sh", "--control-port",
          port, "--pgid", "2", nullptr);
    _exit(127);
  }
  ~Proxy() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;
  /// Once it has that command line.
  pid_t pid() const {
    const std::string path = "/proc/" + std::to_string(pid_) + "/cmdline";
    for (int i = 0; i < 10'000; ++i, usleep(1000)) {
      const auto text = read_text_file(path);
      if (text && text->find("--pgid") != std::string::npos) break;
    }
    return pid_;
  }

 private:
  pid_t pid_;
};

TEST(LaunchId, under_hydra_is_where_its_proxies_find_it_and_may_come_again) {
  const Variables variables{
      {"HYDI_CONTROL_FD", "7"}, {"PMI_RANK", "1"},     {"PMI_SIZE", "4"},
      {"MPI_LOCALNRANKS", "2"}, {"SLURM_JOB_ID", "7"},  // of the srun that started the proxy
      {"SLURM_STEP_ID", "3"}};
  const auto get = [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  const Proxy proxy("n1:46751");
  const Launch launch = find_launch(get, getpid(), proxy.pid());
  EXPECT_EQ(launch.id, "hydra-n1.46751.2");
  EXPECT_TRUE(launch.has_launcher);
  EXPECT_TRUE(launch.may_come_again);
  EXPECT_FALSE(launch.is_of_all_nodes) << "nodes do not meet under a name that comes again";
  EXPECT_EQ(launch.local_rank_count, 2u);
  EXPECT_EQ(launch.world_size, 4u);
  // A shell between the two is a launch of its own.
  EXPECT_FALSE(find_launch(get, getpid(), getppid()).may_come_again);
}

TEST(LaunchId, is_its_own_in_a_batch_script) {
  const Launch batch = launch_with({{"SLURM_JOB_ID", "7"}});
  EXPECT_EQ(batch.id, identity_of(getpid()));
  EXPECT_FALSE(batch.has_launcher);
  EXPECT_EQ(launch_with({{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "4294967291"}}).id, batch.id);
}

TEST(LaunchId, is_the_run_and_restart_of_torchrun) {
  EXPECT_EQ(launch_with({{"TORCHELASTIC_RUN_ID", "job1"}, {"TORCHELASTIC_RESTART_COUNT", "2"}}).id,
            "job1.2");
  EXPECT_EQ(launch_with({{"TORCHELASTIC_RUN_ID", "none"}}).id, identity_of(getppid()));
}

TEST(LaunchId, is_the_parent_under_hydra) {
  const Launch launch = launch_with({{"PMI_RANK", "1"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_EQ(launch.id, identity_of(getppid()));
  EXPECT_TRUE(launch.has_launcher);
  EXPECT_EQ(launch.local_rank_count, 2u);
}

TEST(LaunchId, is_the_containers_where_the_launcher_is_outside_of_it) {
  const auto get = [](const char* name) { return strcmp(name, "PMI_RANK") == 0 ? "1" : nullptr; };
  const Launch launch = find_launch(get, getpid(), 0);
  EXPECT_EQ(launch.id, identity_of(1)) << "0 is the launcher of every launch";
  EXPECT_TRUE(launch.has_launcher);
  EXPECT_TRUE(launch.may_come_again);
  EXPECT_FALSE(launch.is_of_all_nodes);
}

TEST(LaunchId, reads_slurms_list_of_tasks) {
  EXPECT_EQ(slurm_tasks_of_node("4", 0), 4u);
  EXPECT_EQ(slurm_tasks_of_node("4", 1), 0u);
  EXPECT_EQ(slurm_tasks_of_node("2(x3),1", 2), 2u);
  EXPECT_EQ(slurm_tasks_of_node("2(x3),1", 3), 1u);
  for (const char* bad : {"", "x", "2(x", "2(x3", "2;3", "2(x3)4"})
    EXPECT_EQ(slurm_tasks_of_node(bad, 5), 0u) << bad;
  EXPECT_EQ(slurm_tasks_of_node(nullptr, 0), 0u);
}

}  // namespace
}  // namespace aon::launcher
