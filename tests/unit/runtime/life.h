/// What tests of a process's life share: runs of life_child with an agent, and what these left.
#pragma once

#include <aon/definition.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/runtime/child.h"
#include "tests/unit/runtime/fake_agent.h"
#include "tests/unit/runtime/numbered.h"
#include "tests/unit/temporary_folder.h"

extern const char* const kLifeChild;  // the build writes it

namespace aon::test {

inline Environment environment(const FakeAgent& agent, Environment more = {}) {
  more.emplace_back("AON_SOCKET", agent.socket_path());
  more.emplace_back("AON_OUTPUT", "");
  more.emplace_back("AON_ATTACH_MS", "60000");  // the first of a name counts: more may say less
  return more;
}

/// Numbers of each thread's marks, in stream order, all whole.
inline std::map<uint32_t, std::vector<uint64_t>> numbers(const TakenProcess& process) {
  std::map<uint32_t, std::vector<uint64_t>> out;
  for (const auto& [key, stream] : process.streams) {
    if (key.first == kDefinitionSlot) continue;
    for (const Record& record : stream.records()) {
      if (record.head.kind != RecordKind::kMark) continue;
      EXPECT_TRUE(is_whole(record)) << "number " << record.head.a64;
      out[record.head.id].push_back(record.head.a64);
    }
  }
  return out;
}

inline void expect_complete(const std::vector<uint64_t>& sequence, uint64_t count) {
  ASSERT_EQ(sequence.size(), count);
  for (uint64_t i = 0; i < count; ++i) ASSERT_EQ(sequence[i], i);
}

/// Room for all that a child writes, so that nothing is refused however late the agent is.
inline FakeAgentOptions roomy() {
  FakeAgentOptions options;
  options.chunk_count = options.offered = 16384;  // 64 MiB: two million events
  return options;
}

/// Runs `name` to its end and checks the law: emitted = taken + refused, by the program's own
/// count.
struct WholeRun {
  explicit WholeRun(const std::string& name, const FakeAgentOptions& options = {},
                    const Environment& more = {})
      : agent(options) {
    child = std::make_unique<Child>(std::vector<std::string>{kLifeChild, name},
                                    environment(agent, more));
    code = child->wait();
    taken = agent.finish(child->pid());
    if (child->number_behind("emitted") >= 0) {
      EXPECT_EQ(taken.counted() + taken.refused(),
                static_cast<uint64_t>(child->number_behind("emitted")));
    }
  }
  FakeAgent agent;
  std::unique_ptr<Child> child;
  int code = -1;
  TakenProcess taken;
};

/// A folder for AON_OUTPUT.
class TemporaryOutput {
 public:
  TemporaryOutput() {
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    node_ = folder_.path() / "spool" / host;
    std::filesystem::create_directories(node_);
  }

  std::string path() const { return folder_.path(); }
  const std::filesystem::path& node() const { return node_; }

  /// Processes of which it is said that nothing is recorded.
  uintmax_t unrecorded_count() const {
    uintmax_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(node_)) {
      const std::string name = entry.path().filename();
      if (name == "unrecorded") count += entry.file_size();
      if (name.rfind("unrecorded-", 0) == 0) count += 1;
    }
    return count;
  }

 private:
  const TemporaryFolder folder_;
  std::filesystem::path node_;
};

struct Definition {
  uint32_t type;
  std::string bytes;
};

/// Those that a process made, put together.
inline std::vector<Definition> definitions(TakenProcess& process) {
  std::vector<Definition> out;
  for (const Record& record : process.streams[{kDefinitionSlot, 0}].records()) {
    if (record.head.a64 == 0) out.push_back({record.head.id, {}});
    const char* bytes = reinterpret_cast<const char*>(record.words);
    const size_t count = std::min<size_t>(record.head.a32 - record.head.a64, sizeof record.words);
    EXPECT_EQ(out.back().bytes.size(), record.head.a64);
    out.back().bytes.append(bytes, count);
  }
  return out;
}

/// Name, reason and remedy of each state of a provider that the process told.
inline std::vector<std::string> provider_texts(TakenProcess& process) {
  std::vector<std::string> told;
  for (const Definition& one : definitions(process)) {
    if (one.type == static_cast<uint32_t>(DefinitionType::kProvider))
      told.push_back(one.bytes.substr(sizeof(ProviderDefinition)));
  }
  return told;
}

}  // namespace aon::test
