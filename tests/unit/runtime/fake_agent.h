/// An agent for tests: one thread that accepts processes, makes their rings with the real
/// RingMemory, and drains them with the real RingReader into vectors. No files, no budget.
/// Thread: the test's; start() makes one more.
#pragma once

#include <aon/record.h>
#include <aon/ring.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/agent/protocol.h"
#include "core/ring/memory.h"
#include "core/ring/reader.h"

namespace aon::test {

/// Everything taken from one stream.
struct TakenStream {
  std::vector<uint8_t> bytes;
  uint64_t counted = 0;  ///< as the writer says
  uint64_t refused = 0;
  ring::StreamPosition position = {};

  /// The records, decoded. Fails the test at the first one that is not whole.
  std::vector<Record> records() const;
};

/// Everything taken from one process.
struct TakenProcess {
  agent::Hello hello = {};
  std::map<std::pair<uint32_t, uint32_t>, TakenStream> streams;  ///< (slot, context)
  std::map<uint32_t, std::vector<uint64_t>> counters;            ///< slot -> counts
  std::map<uint32_t, std::vector<Record>> open_calls;            ///< slot -> calls
  uint64_t refused_no_slot = 0;
  uint32_t slots_used = 0;
  uint32_t free_chunk_count = 0;

  uint64_t counted() const;  ///< in all streams but the definitions
  uint64_t refused() const;  ///< the same, with those without a slot
};

struct FakeAgentOptions {
  uint32_t slot_count = kMaxThreadSlots;
  uint32_t chunk_count = 2048;
  uint32_t offered = 2048;
  uint32_t drain_period_us = 5000;
  bool grows = false;            ///< offers more chunks as they are used
  bool keeps = true;             ///< false: what is taken is dropped
  bool drains = true;            ///< false: only at the end
  bool answers = true;           ///< false: accepts, and never says Welcome
  bool welcomes = true;          ///< false: makes the ring, and never says Welcome
  uint32_t user = UINT32_MAX;    ///< listens with his credentials, which only root can
  bool seals = true;             ///< false: hands out a copy of the ring that can be cut off
  int bell_fd = -1;              ///< page given to processes, to ring when half their room is used
  bool offers_too_much = false;  ///< chunks that the ring has not got, too
};

class FakeAgent {
 public:
  explicit FakeAgent(const FakeAgentOptions& options = {});
  ~FakeAgent();
  FakeAgent(const FakeAgent&) = delete;
  FakeAgent& operator=(const FakeAgent&) = delete;

  const std::string& socket_path() const { return path_; }

  /// What process `pid` left, after a last drain; it must have ended. Empty: it never attached.
  /// `end_ticks` closes its open calls.
  TakenProcess finish(int32_t pid, uint64_t end_ticks = UINT64_MAX);
  /// What process `pid` would leave if it ended now; it must be stopped. Takes nothing, and has
  /// all of it only when nothing was taken before (options: !drains). Empty: it has not attached.
  TakenProcess look(int32_t pid);
  /// Processes that have attached so far.
  std::vector<int32_t> pids();
  /// How many these are.
  size_t process_count();
  /// A look at a live process's mode words. Null: not attached.
  std::atomic<uint32_t>* modes(int32_t pid);
  /// Offers more chunks to a live process.
  void offer(int32_t pid, uint32_t count);

 private:
  class Taker;
  class Client;
  void run();
  void accept_one();
  Client* find(int32_t pid);

  FakeAgentOptions options_;
  std::string folder_;
  std::string path_;
  int listener_ = -1;
  std::atomic<bool> stop_{false};
  std::mutex m_;
  std::vector<std::unique_ptr<Client>> clients_;  ///< guarded by m_
  std::vector<int> silent_;                       ///< guarded by m_
  std::thread thread_;
};

}  // namespace aon::test
