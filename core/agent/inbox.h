/// What the other threads of the worker hand to the encode thread besides staging: definitions
/// (clock, usage, counts, budget, providers). It dies with the worker: a new one sends the latest
/// state again. Samples have their own way, which outlives it (series.h).
/// Of what supersedes itself only the latest waits. While the encode thread is held up (a disk that
/// hangs) at most kMaxDefinitions wait; those beyond are counted.
/// Thread: any puts, the encode thread takes.   Cost: a short lock.
#pragma once

#include <aon/definition.h>
#include <aon/mutex.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <map>
#include <string_view>
#include <tuple>
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
  /// How many calls of a region a thread's slot has counted by now.
  void define_counts(const CountsDefinition& counts) {
    std::vector<uint8_t> payload(sizeof(counts));
    std::memcpy(payload.data(), &counts, sizeof(counts));
    const MutexLock lock(&m_);
    const std::tuple key(counts.process, counts.slot, counts.region);
    const auto [found, is_new] = counts_.try_emplace(key, definitions_.size());
    if (!is_new) {
      definitions_[found->second].payload = std::move(payload);
    } else if (!push({counts.process, DefinitionType::kCounts, std::move(payload)})) {
      counts_.erase(found);
    }
  }
  /// `refused`: how many of each process there was no room for.
  void take(std::vector<InboxDefinition>* definitions, std::map<uint32_t, uint64_t>* refused) {
    definitions->clear();
    refused->clear();
    const MutexLock lock(&m_);
    definitions->swap(definitions_);
    refused->swap(refused_);
    counts_.clear();
  }

  static constexpr size_t kMaxDefinitions = 65536;

 private:
  static void append(std::vector<uint8_t>* payload,
                     std::initializer_list<std::string_view> strings) {
    for (std::string_view text : strings) {
      payload->insert(payload->end(), text.begin(), text.end());
      payload->push_back(0);
    }
  }
  void put(InboxDefinition definition) {
    const MutexLock lock(&m_);
    push(std::move(definition));
  }
  /// False: there is no room.
  bool push(InboxDefinition definition) AON_REQUIRES(m_) {
    if (definitions_.size() >= kMaxDefinitions) {
      ++refused_[definition.process];
      return false;
    }
    definitions_.push_back(std::move(definition));
    return true;
  }

  Mutex m_;
  std::vector<InboxDefinition> definitions_ AON_GUARDED_BY(m_);
  std::map<uint32_t, uint64_t> refused_ AON_GUARDED_BY(m_);  ///< by process
  /// Where in definitions_ the counts of process, slot and region stand.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, size_t> counts_ AON_GUARDED_BY(m_);
};

}  // namespace aon::agent
