#include "core/agent/unseen.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/agent/border_events.h"

namespace aon::agent {
namespace {

std::string written(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::temp_directory_path() / (name + std::to_string(getpid()));
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(Unseen, an_ordinary_program_is_dynamic) {
  EXPECT_EQ(linkage_of("/proc/self/exe"), Linkage::kDynamic);
}

TEST(Unseen, nothing_is_said_of_what_is_no_program) {
  EXPECT_EQ(linkage_of("/nowhere"), Linkage::kUnknown);
  EXPECT_EQ(linkage_of("/tmp"), Linkage::kUnknown);
  EXPECT_EQ(linkage_of(""), Linkage::kUnknown);
  const std::string script = written("aon-script-", "#!/bin/sh\nexit 0\n");
  EXPECT_EQ(linkage_of(script), Linkage::kUnknown);
  std::filesystem::remove(script);
}

/// Name, reason and remedy of what is said of a process that was followed.
std::vector<std::string> said_of(Followed how, const Options& options, const std::string& library) {
  const UniqueFd fd = State::create().value();
  ProcessCell& cell = State::map(fd.get()).value().process(0);
  cell.is_followed = static_cast<uint32_t>(how);
  Inbox inbox;
  UnseenPrograms(options).report_process(cell, library, &inbox);
  std::vector<InboxDefinition> definitions;
  std::map<uint32_t, uint64_t> refused;
  inbox.take(&definitions, &refused);
  std::vector<std::string> texts;
  for (const InboxDefinition& definition : definitions) {
    std::string text(definition.payload.begin() + sizeof(ProviderDefinition),
                     definition.payload.end() - 1);
    std::replace(text.begin(), text.end(), '\0', '|');
    texts.push_back(text);
  }
  return texts;
}

TEST(Unseen, a_followed_process_says_what_it_lacks) {
  const auto texts = said_of(Followed::kRegistered, {}, "");
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_TRUE(texts[0].starts_with("mpi|no MPI call passed the preloaded library|")) << texts[0];
  EXPECT_EQ(texts[1],
            "recording|counters and samples begin when it had used a second of CPU time|aon-run "
            "--without mpi has all");
}

TEST(Unseen, a_loaded_library_is_named) {
  const std::string text = said_of(Followed::kRegistered, {}, "libmpi.so.40").at(0);
  EXPECT_TRUE(text.starts_with("mpi|libmpi.so.40 is loaded, and no call passed libaon-mpi.so: "));
  EXPECT_TRUE(
      text.ends_with("|call them by MPI_ names, or look them up by dlsym(RTLD_DEFAULT, "
                     "name)"))
      << text;
}

TEST(Unseen, a_program_that_aon_run_has_not_started_has_a_remedy_of_its_own) {
  EXPECT_TRUE(said_of(Followed::kBelow, {}, "")
                  .at(1)
                  .ends_with("|aon-run --without mpi before that program has all"));
  Options without_mpi;
  without_mpi.without = {"mpi"};
  EXPECT_TRUE(said_of(Followed::kRegistered, without_mpi, "").empty()) << "it lacks nothing";
  const auto texts = said_of(Followed::kBelow, without_mpi, "");
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_TRUE(texts[0].ends_with("|aon-run before that program has all")) << texts[0];
}

/// In the words that a rank has for it.
TEST(Unseen, events_that_no_program_may_read_are_no_matter_of_calls) {
  Options options;
  options.events = {"1/2/0/0/0/page-faults"};
  EXPECT_EQ(said_of(Followed::kRegistered, options, "").size(), 2u) << "the agent counts them";
  options.events.push_back("0/0/0/0/0/cycles");
  const std::string text = said_of(Followed::kRegistered, options, "").at(2);
  const int problem = try_border_event(options.events[1], runtime::counter_source());
  if (problem == 0) {
    EXPECT_TRUE(text.ends_with("|aon-run --without mpi")) << text;
  } else {
    const runtime::CounterProblem words = runtime::explain_counters(problem);
    EXPECT_EQ(text, std::string("counters|") + words.reason + runtime::kNotAtBorders + "|" +
                        words.remedy);
  }
}

TEST(Unseen, a_cut_file_is_read_without_harm) {
  std::ifstream self("/proc/self/exe", std::ios::binary);
  std::string bytes(1 << 16, '\0');
  self.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  for (const size_t byte_count : {size_t{4}, size_t{64}, size_t{100}, size_t{4096}, bytes.size()}) {
    const std::string cut = written("aon-cut-", bytes.substr(0, byte_count));
    EXPECT_NE(linkage_of(cut), Linkage::kOwnMpi) << byte_count;
    std::filesystem::remove(cut);
  }
}

}  // namespace
}  // namespace aon::agent
