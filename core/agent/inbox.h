/// What the other threads of the worker hand to the encode thread besides staging: definitions
/// (clock, usage, counts, budget, providers). It dies with the worker: a new one sends the latest
/// state again. Samples have their own way, which outlives it (series.h).
/// Thread: any puts, the encode thread takes.   Cost: a short lock.
#pragma once

#include <aon/definition.h>

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
  void define_bytes(uint32_t process, DefinitionType type, const void* bytes, size_t byte_count) {
    const auto* first = static_cast<const uint8_t*>(bytes);
    put({process, type, std::vector<uint8_t>(first, first + byte_count)});
  }
  void define_text(uint32_t process, DefinitionType type, std::string_view text) {
    std::vector<uint8_t> payload;
    append(&payload, {text});
    put({process, type, std::move(payload)});
  }
  void take(std::vector<InboxDefinition>* definitions) {
    definitions->clear();
    const std::lock_guard lock(m_);
    definitions->swap(definitions_);
  }

 private:
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
  std::vector<InboxDefinition> definitions_;  ///< guarded by m_
};

}  // namespace aon::agent
