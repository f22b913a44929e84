#include "launcher/doorman.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "tests/unit/folder_fixture.h"

namespace aon::launcher {
namespace {

class DoormanTest : public test::FolderFixture {
 protected:
  /// The directory of a launch `id` in the job that `variables_` describe.
  std::string directory(const std::string& id) {
    Launch launch;
    launch.id = id;
    return directory_in_job(launch, [&](const char* name) -> const char* {
      const auto it = variables_.find(name);
      return it == variables_.end() ? nullptr : it->second.c_str();
    });
  }

  std::map<std::string, std::string> variables_{{"SLURM_JOB_ID", "12"},
                                                {"SLURM_SUBMIT_DIR", folder_}};
};

TEST_F(DoormanTest, names_the_directory_of_a_step_after_job_and_step) {
  EXPECT_EQ(directory("12.3"), path("aon-12.3"));
  EXPECT_EQ(directory("slurm.pmix.12.3"), path("aon-12.3"));
}

TEST_F(DoormanTest, names_the_directory_of_another_launch_after_job_and_launch) {
  EXPECT_EQ(directory("4711"), path("aon-12-4711"));
  EXPECT_EQ(directory("123.0"), path("aon-12-123.0"));
}

TEST_F(DoormanTest, uses_the_directory_that_was_asked_for) {
  variables_["AON_DOOR_OUTPUT"] = "/elsewhere/x";
  EXPECT_EQ(directory("12.3"), "/elsewhere/x");
  variables_["AON_DOOR_OUTPUT"] = "mine";
  EXPECT_EQ(directory("12.3"), path("mine"));
}

TEST_F(DoormanTest, tells_what_the_user_wants_from_what_it_gave_itself) {
  variables_["AON_OUTPUT"] = "/of/a/user";
  EXPECT_EQ(directory("12.3"), "/of/a/user");
  variables_["AON_DOOR"] = "/tmp/door";
  variables_["AON_DOOR_GAVE"] = "/of/a/user";
  EXPECT_EQ(directory("12.3"), path("aon-12.3"));
  variables_["AON_DOOR_OUTPUT"] = "/asked/for";
  EXPECT_EQ(directory("12.3"), "/asked/for");
  variables_["AON_OUTPUT"] = "/since/then";
  EXPECT_EQ(directory("12.3"), "/since/then");
}

TEST_F(DoormanTest, goes_home_where_the_submit_folder_cannot_be_written) {
  variables_["SLURM_SUBMIT_DIR"] = path("not there");
  variables_["HOME"] = "/users/own";
  EXPECT_EQ(directory("12.3"), "/users/own/aon-12.3");
}

TEST_F(DoormanTest, tells_of_a_variable_that_is_no_setting) {
  ASSERT_EQ(setenv("AON_BUGDET", "2", 1), 0);
  const Wanted wanted = options_of_environment(Installation{});
  unsetenv("AON_BUGDET");
  ASSERT_EQ(wanted.wrong.size(), 1u);
  EXPECT_EQ(wanted.wrong.front().variable, "AON_BUGDET");
}

TEST_F(DoormanTest, does_not_stand_where_it_cannot_see_the_end_of_the_task) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);  // none to watch, as on a kernel without pidfds
  Result<AgentLink> link = join_or_listen(path("door"));
  ASSERT_TRUE(link);
  const Status status = start_doorman(std::move(*link), Installation{}, child);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("cannot be watched"), std::string::npos);
  EXPECT_NE(access(path("door").c_str(), F_OK), 0);
}

TEST_F(DoormanTest, reads_the_environment_of_another_process) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const char* const words[] = {"sh", "-c", "echo up; sleep 100", nullptr};
    const char* const variables[] = {"A=1", "B=with a space", "EMPTY=", nullptr};
    dup2(ready[1], STDOUT_FILENO);
    setpgid(0, 0);  // whoever ends it ends its sleep, too
    execve("/bin/sh", const_cast<char**>(words), const_cast<char**>(variables));
    _exit(127);
  }
  char text[3];
  ASSERT_EQ(read(ready[0], text, sizeof(text)), 3);
  const std::vector<std::string> found = environment_of(child);
  kill(-child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(found, (std::vector<std::string>{"A=1", "B=with a space", "EMPTY="}));
  EXPECT_TRUE(environment_of(child).empty());
}

}  // namespace
}  // namespace aon::launcher
