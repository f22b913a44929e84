/// What the other threads of the worker hand to the encode thread besides staging: definitions
/// (clock, usage, counts, budget) and samples of node providers. It dies with the worker: a new one
/// sends the latest state again.
/// Thread: any puts, the encode thread takes.   Cost: a short lock.
#pragma once

#include <aon/definition.h>
#include <aon/record.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace aon::agent {

struct InboxDefinition {
  uint32_t process;  ///< whose block it goes into; spool::kNodeProcess for the node
  DefinitionType type;
  std::vector<uint8_t> payload;
};

/// A kSample record: two slots.
struct InboxSample {
  uint32_t process;
  uint32_t reserved;
  RecordHead head;
  uint64_t words[4];
};

class Inbox {
 public:
  template <class T>
  void define(uint32_t process, DefinitionType type, const T& definition,
              std::initializer_list<std::string_view> strings = {}) {
    std::vector<uint8_t> payload(sizeof(T));
    std::memcpy(payload.data(), &definition, sizeof(T));
    append(&payload, strings);
    put({process, type, std::move(payload)});
  }
  void define_text(uint32_t process, DefinitionType type, std::string_view text) {
    std::vector<uint8_t> payload;
    append(&payload, {text});
    put({process, type, std::move(payload)});
  }
  /// False when it is full: the caller counts the loss.
  bool sample(const InboxSample& sample) {
    const std::lock_guard lock(m_);
    if (samples_.size() >= kMaxSamples) return false;
    samples_.push_back(sample);
    return true;
  }
  void take(std::vector<InboxDefinition>* definitions, std::vector<InboxSample>* samples) {
    definitions->clear();
    samples->clear();
    const std::lock_guard lock(m_);
    definitions->swap(definitions_);
    samples->swap(samples_);
  }

 private:
  static constexpr size_t kMaxSamples = 65536;
  static constexpr size_t kMaxDefinitions = 65536;

  static void append(std::vector<uint8_t>* payload,
                     std::initializer_list<std::string_view> strings) {
    for (std::string_view text : strings) {
      payload->insert(payload->end(), text.begin(), text.end());
      payload->push_back(0);
    }
  }
  void put(InboxDefinition definition) {
    const std::lock_guard lock(m_);
    if (definitions_.size() < kMaxDefinitions) definitions_.push_back(std::move(definition));
  }

  std::mutex m_;
  // Guarded by m_.
  std::vector<InboxDefinition> definitions_;
  std::vector<InboxSample> samples_;
};

}  // namespace aon::agent
