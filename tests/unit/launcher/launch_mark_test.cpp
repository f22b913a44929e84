// The mark that a process without an agent puts into its file, against what its launch's folder
// holds: two programs find the same launch by the same rules.

#include "core/runtime/launch_mark.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>
#include <map>
#include <string>

#include "core/base/file.h"
#include "core/base/name_hash.h"
#include "launcher/job_directory.h"
#include "tests/unit/folder_fixture.h"

namespace aon::launcher {
namespace {

using Variables = std::map<std::string, std::string>;

Variables g_variables;

const char* read(const char* name) {
  const auto found = g_variables.find(name);
  return found != g_variables.end() ? found->second.c_str() : nullptr;
}

uint64_t mark_of(const Variables& variables) {
  g_variables = variables;
  return runtime::launch_mark(read);
}

class LaunchMark : public test::FolderFixture {
 protected:
  /// Hash of DIR/.launch as aon-run makes it with these variables.
  uint64_t hash_of_folder(const Variables& variables) {
    g_variables = variables;
    const std::string wanted = path("job" + std::to_string(folder_count_++));
    const Result<std::string> dir = open_job_directory(wanted, find_launch(read));
    if (!dir) return 0;
    const Result<std::string> text = read_text_file(*dir + "/.launch");
    return text ? strtoull(name_hash(*text).c_str(), nullptr, 16) : 0;
  }

 private:
  int folder_count_ = 0;
};

TEST_F(LaunchMark, is_that_of_the_folder_of_its_launch) {
  const Variables step = {{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "3"}};
  Variables requeued = step;
  requeued["SLURM_RESTART_COUNT"] = "2";
  Variables pmix = requeued;
  pmix["PMIX_NAMESPACE"] = "slurm.pmix.7.3";
  const Variables all[] = {
      step,
      requeued,
      pmix,
      {{"PMIX_NAMESPACE", "1812334593"}, {"OMPI_MCA_orte_hnp_uri", "1812334592.0;tcp://10.0.0.1"}},
      {{"PMIX_NAMESPACE", "1812334593"},
       {"OMPI_MCA_orte_hnp_uri", "1812334592.0;tcp://10.0.0.1"},
       {"SLURM_RESTART_COUNT", "1"}},
      {{"PMIX_NAMESPACE", "../a/b c\xc3\xa9"}},
      {{"PMIX_NAMESPACE", std::string(5000, 'x')}},
      {{"SLURM_JOB_ID", std::string(95, '7')}, {"SLURM_STEP_ID", "123"}},
      {{"TORCHELASTIC_RUN_ID", "run 1"}},
      {{"TORCHELASTIC_RUN_ID", "run 1"}, {"TORCHELASTIC_RESTART_COUNT", "4"}},
      {{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "4294967291"}, {"TORCHELASTIC_RUN_ID", "run"}},
  };
  std::map<uint64_t, size_t> marks;
  for (const Variables& variables : all) {
    const uint64_t mark = mark_of(variables);
    EXPECT_NE(mark, 0u);
    EXPECT_EQ(mark, hash_of_folder(variables)) << variables.begin()->second;
    ++marks[mark];
  }
  EXPECT_EQ(marks.size(), std::size(all));
}

TEST_F(LaunchMark, is_none_where_the_environment_does_not_name_the_launch) {
  EXPECT_EQ(mark_of({}), 0u);
  EXPECT_EQ(mark_of({{"SLURM_JOB_ID", "7"}}), 0u);
  EXPECT_EQ(mark_of({{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "4294967291"}}), 0u);
  EXPECT_EQ(mark_of({{"TORCHELASTIC_RUN_ID", "none"}}), 0u);
  EXPECT_EQ(mark_of({{"PMIX_NAMESPACE", ""}, {"SLURM_RESTART_COUNT", "1"}}), 0u);
}

}  // namespace
}  // namespace aon::launcher
