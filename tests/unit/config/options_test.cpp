#include "core/base/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace aon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Words = std::vector<const char*>;

Result<CommandLine> read(const Words& arguments, const Words& environment = {}) {
  return read_command_line(arguments, environment);
}

TEST(Options, have_the_documented_defaults) {
  const auto line = read({"./a"});
  ASSERT_TRUE(line.has_value()) << line.error().message;
  EXPECT_EQ(line->options.memory_bytes, 8u << 20);
  EXPECT_EQ(line->options.disk_bytes, 1u << 30);
  EXPECT_EQ(line->options.flush_ms, 250u);
  EXPECT_EQ(line->options.budget_percent, 1.0);
  EXPECT_EQ(line->options.wait_s, 60u);
  EXPECT_EQ(line->options.otf2_location_count, 4096u);
  EXPECT_FALSE(line->options.no_assemble);
  EXPECT_THAT(line->program, ElementsAre("./a"));
}

TEST(Options, end_at_the_program) {
  const auto line = read({"-o", "out", "./a", "--memory", "1", "-v", "--", "x", "--bogus"});
  ASSERT_TRUE(line.has_value()) << line.error().message;
  EXPECT_EQ(line->options.output_dir, "out");
  EXPECT_FALSE(line->options.verbose);
  EXPECT_THAT(line->program, ElementsAre("./a", "--memory", "1", "-v", "--", "x", "--bogus"));
}

TEST(Options, of_the_command_line_are_told_from_those_of_the_environment) {
  const auto line = read({"-o", "out", "./a"}, {"AON_OUTPUT=other", "AON_SPOOL_DIR=/tmp"});
  ASSERT_TRUE(line.has_value()) << line.error().message;
  EXPECT_EQ(line->options.spool_dir, "/tmp");
  EXPECT_THAT(line->given, ElementsAre("output"));
}

TEST(Options, end_at_two_dashes) {
  const auto line = read({"-v", "--", "-strange", "--", "-v"});
  ASSERT_TRUE(line.has_value()) << line.error().message;
  EXPECT_TRUE(line->options.verbose);
  EXPECT_THAT(line->program, ElementsAre("-strange", "--", "-v"));
}

TEST(Options, program_may_repeat_the_two_dashes) {
  const auto line = read({"--", "bash", "-c", "true", "--"});
  ASSERT_TRUE(line.has_value()) << line.error().message;
  EXPECT_THAT(line->program, ElementsAre("bash", "-c", "true", "--"));
}

TEST(Options, accept_every_spelling) {
  const auto line = read({"-oshort", "--memory=1M", "--budget", "0.5", "--no-assemble", "a"});
  ASSERT_TRUE(line.has_value()) << line.error().message;
  EXPECT_EQ(line->options.output_dir, "short");
  EXPECT_EQ(line->options.memory_bytes, 1u << 20);
  EXPECT_EQ(line->options.budget_percent, 0.5);
  EXPECT_TRUE(line->options.no_assemble);
}

TEST(Options, take_the_last_of_a_repeated_one) {
  const auto line = read({"-o", "first", "-o", "second", "a"});
  ASSERT_TRUE(line.has_value()) << line.error().message;
  EXPECT_EQ(line->options.output_dir, "second");
}

TEST(Options, keep_empty_arguments_of_the_program) {
  const auto line = read({"a", "", "b"});
  ASSERT_TRUE(line.has_value()) << line.error().message;
  EXPECT_THAT(line->program, ElementsAre("a", "", "b"));
}

TEST(Options, refuse_an_empty_value_by_name) {
  for (const Words& words :
       {Words{"--output=", "true"}, Words{"--output", "", "true"}, Words{"-o", "", "true"},
        Words{"-v", "--memory=", "true"}, Words{"--without=", "true"}}) {
    const auto line = read(words);
    ASSERT_FALSE(line.has_value());
    EXPECT_THAT(line.error().message, HasSubstr("needs a value"));
  }
  EXPECT_THAT(read({"--output=", "true"}).error().message,
              HasSubstr("--output needs a value: DIR"));
  EXPECT_FALSE(read({"--verbose=", "true"}).has_value());
  EXPECT_TRUE(read({"-o", "out", "a", "--output="}).has_value()) << "the program's own";
  EXPECT_TRUE(read({"-v", "--", "a", "--output="}).has_value());
}

TEST(Options, refuse_a_configuration_that_is_no_file) {
  const auto folder = read({"a"}, {"AON_CONFIG=/tmp"});
  ASSERT_FALSE(folder.has_value());
  EXPECT_EQ(folder.error().message, "AON_CONFIG: /tmp is a directory; expected a TOML file");
  const auto missing = read({"a"}, {"AON_CONFIG=/none/none.toml"});
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().message, "AON_CONFIG: /none/none.toml: No such file or directory");
}

TEST(Options, refuse_an_unknown_one_by_name) {
  const auto line = read({"--bogus", "./a"});
  ASSERT_FALSE(line.has_value());
  EXPECT_THAT(line.error().message, HasSubstr("--bogus"));
  EXPECT_FALSE(read({"-x", "./a"}).has_value());
}

TEST(Options, refuse_a_missing_program_or_value) {
  EXPECT_FALSE(read({}).has_value());
  EXPECT_FALSE(read({"-v"}).has_value());
  EXPECT_FALSE(read({"--"}).has_value());
  EXPECT_FALSE(read({"-o"}).has_value());
}

TEST(Options, refuse_values_out_of_range_with_the_source) {
  for (const char* bad : {"--memory=1k", "--memory=8X", "--memory=-1", "--budget=0", "--budget=101",
                          "--wait=-1", "--wait=1.5", "--flush-ms=abc", "--disk=", "--wait=nan"}) {
    EXPECT_FALSE(read({bad, "a"}).has_value()) << bad;
  }
  const auto line = read({"a"}, {"AON_MEMORY=much"});
  ASSERT_FALSE(line.has_value());
  EXPECT_THAT(line.error().message, HasSubstr("AON_MEMORY"));
}

TEST(Options, are_read_from_the_environment_below_the_command_line) {
  const auto line = read({"--wait=3", "a"}, {"AON_WAIT=5", "AON_NODE_MEMORY=64MiB",
                                             "AON_NO_ASSEMBLE=1", "AON_WITHOUT=perf,mpi"});
  ASSERT_TRUE(line.has_value()) << line.error().message;
  EXPECT_EQ(line->options.wait_s, 3u);
  EXPECT_EQ(line->options.node_memory_bytes, 64u << 20);
  EXPECT_TRUE(line->options.no_assemble);
  EXPECT_THAT(line->options.without, ElementsAre("perf", "mpi"));
}

TEST(Options, ignore_the_output_that_an_outer_run_exported) {
  const auto line = read({"a"}, {"AON_OUTPUT=/outer", "AON_SOCKET=/run/s"});
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->options.output_dir, "");
}

TEST(Options, lists_may_have_spaces) {
  const auto line = read({"--without= perf, mpi ,,", "a"}, {});
  ASSERT_TRUE(line.has_value()) << line.error().message;
  EXPECT_THAT(line->options.without, ElementsAre("perf", "mpi"));
}

TEST(Options, take_another_output_than_the_outer_run_exported_for_the_users) {
  for (const char* gave : {"AON_OUTPUT_GAVE=/outer", "AON_DOOR_GAVE=/outer"}) {
    auto line = read({"a"}, {"AON_OUTPUT=/outer", "AON_SOCKET=/run/s", gave});
    ASSERT_TRUE(line.has_value());
    EXPECT_EQ(line->options.output_dir, "") << gave;
    line = read({"a"}, {"AON_OUTPUT=inner", "AON_SOCKET=/run/s", gave});
    ASSERT_TRUE(line.has_value());
    EXPECT_EQ(line->options.output_dir, "inner") << gave;
  }
}

TEST(Options, a_flag_of_the_command_line_counts_whether_it_says_on_or_off) {
  const auto off = read({"--drop-spool=0", "--no-assemble=false", "a"},
                        {"AON_DROP_SPOOL=1", "AON_NO_ASSEMBLE=1"});
  ASSERT_TRUE(off.has_value()) << off.error().message;
  EXPECT_FALSE(off->options.drop_spool);
  EXPECT_FALSE(off->options.no_assemble);
  const auto on = read({"--drop-spool", "--no-assemble=yes", "a"}, {"AON_DROP_SPOOL=0"});
  ASSERT_TRUE(on.has_value()) << on.error().message;
  EXPECT_TRUE(on->options.drop_spool);
  EXPECT_TRUE(on->options.no_assemble);
  EXPECT_THAT(on->program, ElementsAre("a"));
  const auto last = read({"--drop-spool", "--drop-spool=0", "a"}, {});
  ASSERT_TRUE(last.has_value()) << last.error().message;
  EXPECT_FALSE(last->options.drop_spool);
  const auto bad = read({"--drop-spool=maybe", "a"}, {});
  ASSERT_FALSE(bad.has_value());
  EXPECT_THAT(bad.error().message, HasSubstr("expected 1 or 0"));
}

TEST(Options, name_the_sizes_they_take) {
  const auto says = [](const char* name, const char* size) {
    const auto line = read({name, size, "a"});
    return line ? std::string("taken") : line.error().message;
  };
  EXPECT_EQ(says("--memory", "1T"), "taken");
  EXPECT_THAT(says("--memory", "16T"), HasSubstr("expected 256KiB to 1TiB"));
  EXPECT_THAT(says("--memory", "4K"), HasSubstr("expected 256KiB to 1TiB"));
  EXPECT_THAT(says("--disk", "2000000T"), HasSubstr("expected 1MiB to 1EiB"));
  EXPECT_THAT(says("--disk", "99999999T"), HasSubstr("at most 1EiB"));
  EXPECT_THAT(says("--node-memory", "2000000T"), HasSubstr("expected 0 to 1EiB"));
}

TEST(Options, of_cupti_take_what_its_variables_mean) {
  const auto plain = read({"a"});
  ASSERT_TRUE(plain.has_value()) << plain.error().message;
  EXPECT_EQ(plain->options.cupti_mode, "exclusive");
  EXPECT_EQ(plain->options.cupti_graph, "graph");
  EXPECT_TRUE(plain->options.cupti_calls);
  EXPECT_EQ(plain->options.cupti_memory_mib, 256u);
  const auto set = read({"a"}, {"AON_CUPTI_MODE=yield", "AON_CUPTI_GRAPH=node", "AON_CUPTI_CALLS=0",
                                "AON_CUPTI_MEMORY=8"});
  ASSERT_TRUE(set.has_value()) << set.error().message;
  EXPECT_EQ(set->options.cupti_mode, "yield");
  EXPECT_EQ(set->options.cupti_graph, "node");
  EXPECT_FALSE(set->options.cupti_calls);
  EXPECT_EQ(set->options.cupti_memory_mib, 8u);
  const auto given = read({"--cupti-mode", "off", "--cupti-calls", "1", "--cupti-memory=1G", "a"},
                          {"AON_CUPTI_MODE=yield", "AON_CUPTI_CALLS=0"});
  ASSERT_TRUE(given.has_value()) << given.error().message;
  EXPECT_EQ(given->options.cupti_mode, "off");
  EXPECT_TRUE(given->options.cupti_calls);
  EXPECT_EQ(given->options.cupti_memory_mib, 1024u);
  EXPECT_THAT(given->program, ElementsAre("a"));
}

TEST(Options, a_number_of_mebibytes_may_have_a_unit) {
  for (const char* text : {"64", "64M", "64m", "64MB", "64MiB", "64 MB", "65536K"}) {
    const auto line = read({"--cupti-memory", text, "a"});
    ASSERT_TRUE(line.has_value()) << text << line.error().message;
    EXPECT_EQ(line->options.cupti_memory_mib, 64u) << text;
  }
  const auto says = [](const char* text) {
    const auto line = read({"--cupti-memory", text, "a"});
    return line ? std::string("taken") : line.error().message;
  };
  for (const char* text : {"much", "64MM", "3000K", "64B", "-5", "1.5"})
    EXPECT_EQ(says(text), "command line: '" + std::string(text) +
                              "' is not valid for --cupti-memory: expected MiB, or a size like "
                              "64MiB or 1G");
  for (const char* text : {"0", "1", "1025", "64GiB"})
    EXPECT_THAT(says(text), HasSubstr("expected 2MiB to 1GiB")) << text;
}

TEST(Options, of_cupti_that_are_none_are_refused_by_their_source) {
  EXPECT_EQ(read({"a"}, {"AON_CUPTI_MODE=Off"}).error().message,
            "AON_CUPTI_MODE: 'Off' is not valid for --cupti-mode: expected one of "
            "exclusive|yield|off");
  EXPECT_THAT(read({"--cupti-graph=nodes", "a"}).error().message, HasSubstr("graph|node"));
  EXPECT_THAT(read({"--cupti-calls", "none", "a"}).error().message, HasSubstr("expected 1 or 0"));
  EXPECT_THAT(read({"--cupti-calls=", "a"}).error().message, HasSubstr("needs a value: SWITCH"));
}

TEST(Options, leave_everything_unread_when_disabled) {
  const auto line = read({"a"}, {"AON_DISABLE=1", "AON_MEMORY=nonsense", "AON_CONFIG=/none"});
  ASSERT_TRUE(line.has_value());
  EXPECT_THAT(line->program, ElementsAre("a"));
  EXPECT_FALSE(read({"a"}, {"AON_DISABLE=0", "AON_MEMORY=nonsense"}).has_value());
  EXPECT_FALSE(read({"a"}, {"AON_DISABLE=", "AON_MEMORY=nonsense"}).has_value());
}

class OptionsFile : public testing::Test {
 protected:
  OptionsFile() {
    const int fd = mkstemp(path_);
    if (fd >= 0) close(fd);
  }
  ~OptionsFile() override { unlink(path_); }
  Result<CommandLine> read_with(const std::string& text, const Words& arguments,
                                Words environment = {}) {
    std::ofstream(path_) << text;
    const std::string variable = std::string("AON_CONFIG=") + path_;
    environment.push_back(variable.c_str());
    return read(arguments, environment);
  }
  char path_[32] = "/tmp/aon-options-XXXXXX";
};

TEST_F(OptionsFile, that_is_a_pipe_or_a_device_is_refused_and_not_waited_for) {
  unlink(path_);
  ASSERT_EQ(mkfifo(path_, 0600), 0);
  for (const std::string& path : {std::string(path_), std::string("/dev/zero")}) {
    const std::string variable = "AON_CONFIG=" + path;
    const auto line = read({"a"}, {variable.c_str()});
    ASSERT_FALSE(line.has_value()) << path;
    EXPECT_EQ(line.error().message,
              "AON_CONFIG: " + path + " is no regular file; expected a TOML file");
  }
  EXPECT_TRUE(read({"a"}, {"AON_CONFIG=/dev/null"}).has_value()) << "says nothing";
}

TEST_F(OptionsFile, is_below_environment_and_command_line) {
  const auto line = read_with(
      "memory = \"4MiB\"\nwait = 7\nbudget = 2.5\ndrop-spool = true\nwithout = [\"perf\"]\n"
      "flush-ms = 100\n",
      {"--wait=1", "a"}, {"AON_FLUSH_MS=50"});
  ASSERT_TRUE(line.has_value()) << line.error().message;
  EXPECT_EQ(line->options.memory_bytes, 4u << 20);
  EXPECT_EQ(line->options.wait_s, 1u);
  EXPECT_EQ(line->options.flush_ms, 50u);
  EXPECT_EQ(line->options.budget_percent, 2.5);
  EXPECT_TRUE(line->options.drop_spool);
  EXPECT_THAT(line->options.without, ElementsAre("perf"));
}

TEST_F(OptionsFile, names_the_mistake) {
  const auto unknown = read_with("memorry = 1\n", {"a"});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_THAT(unknown.error().message, HasSubstr("memorry"));
  const auto broken = read_with("wait = 1\n = \n", {"a"});
  ASSERT_FALSE(broken.has_value());
  EXPECT_THAT(broken.error().message, HasSubstr(":2:"));
  EXPECT_FALSE(read({"a"}, {"AON_CONFIG=/nonexistent/aon.toml"}).has_value());
}

TEST(Options, sizes_are_powers_of_1024) {
  EXPECT_EQ(*parse_bytes("8MiB"), 8u << 20);
  EXPECT_EQ(*parse_bytes("64k"), 65536u);
  EXPECT_EQ(*parse_bytes("1G"), 1u << 30);
  EXPECT_EQ(*parse_bytes("4096"), 4096u);
  EXPECT_EQ(*parse_bytes("16 MB"), 16u << 20);
  for (const char* bad : {"", "M", "8Q", "8MiBs", "18446744073709551615k", "-1", "1.5G"})
    EXPECT_FALSE(parse_bytes(bad).has_value()) << bad;
}

TEST(Options, help_names_every_row) {
  const std::string text = help_text();
  for (const OptionSpec& spec : option_table()) {
    EXPECT_THAT(text, HasSubstr(std::string("--") + spec.name));
    EXPECT_THAT(text, HasSubstr(spec.help));
  }
  EXPECT_EQ(read({"--help"})->action, Action::kHelp);
  EXPECT_EQ(read({"--version"})->action, Action::kVersion);
}

TEST(EnvironmentOptions, what_is_wrong_is_left_out_and_the_rest_holds) {
  std::vector<WrongSetting> wrong;
  const Words words{"AON_MEMORY=nonsense", "AON_FLUSH_MS=100", "AON_CALL_GRAPH=x",
                    "AON_WITHOUT=perf"};
  const Options options = read_environment(words, wrong);
  EXPECT_EQ(options.memory_bytes, 8u << 20);
  EXPECT_EQ(options.flush_ms, 100u);
  EXPECT_EQ(options.call_graph, "fp");
  EXPECT_THAT(options.without, ElementsAre("perf"));
  ASSERT_EQ(wrong.size(), 2u);
  EXPECT_EQ(wrong[0].variable, "AON_MEMORY");
  EXPECT_EQ(wrong[0].message, read({"a"}, {"AON_MEMORY=nonsense"}).error().message);
  EXPECT_EQ(wrong[1].variable, "AON_CALL_GRAPH");
}

TEST_F(OptionsFile, is_read_setting_by_setting_where_there_is_nobody_to_tell) {
  std::ofstream(path_) << "memory = \"16MiB\"\nbogus = 1\nflush-ms = 100\n";
  std::vector<WrongSetting> wrong;
  const std::string named = std::string("AON_CONFIG=") + path_;
  const Options options = read_environment(Words{named.c_str()}, wrong);
  EXPECT_EQ(options.memory_bytes, 16u << 20);
  EXPECT_EQ(options.flush_ms, 100u);
  const std::string message = std::string(path_) + ": unknown option 'bogus'";
  EXPECT_THAT(wrong, ElementsAre(WrongSetting{"AON_CONFIG", message}));
  wrong.clear();
  EXPECT_EQ(read_environment(Words{"AON_CONFIG=/no/file"}, wrong).flush_ms, 250u);
  EXPECT_EQ(wrong.size(), 1u);
}

TEST(AgentArguments, are_read_back_as_written) {
  AgentArguments values;
  values.options = read({"-o", "/job dir", "--memory=1M", "--without=perf,nccl", "--budget=0.25",
                         "--drop-spool", "--wait=0", "--cupti-calls=0", "--cupti-memory=8", "a"})
                       ->options;
  values.launch_id = "host-1=2";
  values.listen_fd = 3;
  values.lock_fd = 4;
  values.left_alone = {{"cupti", "CUDA_INJECTION64_PATH"}, {"nccl", "NCCL_PROFILER_PLUGIN"}};
  values.wrong = {{"AON_MEMORY", "AON_MEMORY: 'x' is not valid for --memory: expected a size"}};
  const std::vector<std::string> texts = agent_arguments(values);
  Words words;
  for (const std::string& text : texts) words.push_back(text.c_str());
  const auto back = read_agent_arguments(words);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->launch_id, "host-1=2");
  EXPECT_EQ(back->listen_fd, 3);
  EXPECT_EQ(back->lock_fd, 4);
  EXPECT_EQ(back->left_alone, values.left_alone);
  EXPECT_EQ(back->wrong, values.wrong);
  EXPECT_EQ(back->options.output_dir, "/job dir");
  EXPECT_EQ(back->options.memory_bytes, 1u << 20);
  EXPECT_FALSE(back->options.cupti_calls);
  EXPECT_EQ(back->options.cupti_memory_mib, 8u);
  EXPECT_THAT(back->options.without, ElementsAre("perf", "nccl"));
  EXPECT_EQ(back->options.budget_percent, 0.25);
  EXPECT_TRUE(back->options.drop_spool);
  EXPECT_EQ(back->options.wait_s, 0u);
}

TEST(AgentArguments, refuse_what_is_missing) {
  EXPECT_FALSE(read_agent_arguments(Words{"--output=/x", "--launch-id=1"}).has_value());
  EXPECT_FALSE(read_agent_arguments(Words{"--bogus"}).has_value());
}

}  // namespace
}  // namespace aon
