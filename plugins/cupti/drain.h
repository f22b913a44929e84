/// Our thread's work: flushes CUPTI, reads the buffers that come, writes the records.
///
/// It writes some records at once and then rests (Pace), so that the agent can empty the ring; a
/// CUPTI that is faster fills its buffers and drops, which is counted.
/// Thread: one.   Cost: docs/gpu-cost.md.
#pragma once

#include <aon/device_gaps.h>
#include <aon/writer.h>

#include <span>

#include "cupti/call_threads.h"
#include "cupti/cost.h"
#include "cupti/emitter.h"
#include "cupti/external_ids.h"
#include "cupti/fixture.h"
#include "cupti/library.h"
#include "cupti/pace.h"
#include "cupti/pool.h"

namespace aon::cupti {

constexpr uint32_t kDrainMs = 500;  ///< between two flushes
constexpr uint32_t kBuffersPerPass = 8;

class Drain {
 public:
  /// `fixture_folder`: "" where no fixture is wanted.
  void use(const Client* client, const char* fixture_folder);

  /// Makes CUPTI hand over the buffers that are complete, or all of them.
  void flush(uint32_t flag);
  /// Compares the clocks and asks how many records were dropped. Only while the subscription is
  /// ours: the answer is reset by asking.
  void ask_cupti();
  Emitter& emitter() { return emitter_; }
  /// What the records that were read cost in the program's calls, by estimate.
  uint64_t records_ns() const { return records_ns_; }
  uint64_t overhead_ns() const { return overhead_ns_; }
  const RecordCounts& counts() const { return counts_; }
  bool has_seen_graphs() const { return counts_.nodes + counts_.graphs != 0; }
  /// CallThreads::take_width() since the last time.
  double take_launch_threads() { return call_threads_.take_width(); }
  /// Flushes fail, one after the other: that is told, and is the end of it.
  bool is_refused() const { return flush_errors_ >= kMostErrors; }
  /// False: ask_cupti() is needed before times can be told.
  bool has_clock() const { return emitter_.has_clock(); }
  /// At the end: says when the program launched work and CUPTI told of none.
  void tell_silence() const;
  /// Calls are not recorded: captures may end unseen.
  void forget_captures() { capture_count_ = 0; }
  /// All buffers that the last flush brought are read. Says how long CUPTI keeps some back,
  /// from 5 s on.
  void note_complete();
  /// At the end, behind the last flush: what CUPTI keeps back does not come any more.
  void tell_kept();
  /// Names that tell less than they could, once.
  void tell_names();
  /// External correlation ids without a call, when they have doubled, or at the end.
  void tell_external_ids(bool is_end);

  /// Reads buffers that were handed over, at most kBuffersPerPass. False: there may be more.
  bool take_buffers();
  /// Gives back buffers that nobody may read, for the subscription is gone; what was in them is
  /// counted as missing, for `cause`.
  void discard_buffers(GapCause cause);

 private:
  static constexpr uint32_t kMostErrors = 4;
  /// One that is never ended does not hide for ever that nothing runs.
  static constexpr uint64_t kLongestCaptureNs = 10'000'000'000;
  struct Capture {
    uint32_t thread;
    uint64_t begin_ns;  ///< by CUPTI's clock
  };
  static constexpr uint32_t kMostCapturing = 64;  ///< launches of further ones are taken for work

  /// Of the records of a buffer.
  struct Walk {
    bool is_whole = true;  ///< all of it was read
    uint32_t unknown = 0;  ///< stretches in between that are no record
  };

  void read_time(uint64_t* ns) const;
  void note_clock(const Writer* w);
  void follow_clock();
  void note_flush(Code code);
  void keep(const FilledBuffer& buffer);
  void read(FilledBuffer* buffer);
  void read_waits(const FilledBuffer& buffer, uint8_t* first);
  template <class Action>
  Walk for_each_record(std::span<uint8_t> bytes, Action action) const;
  uint8_t* find_record(std::span<uint8_t> bytes) const;
  size_t length_of(std::span<uint8_t> bytes) const;
  void tell_kept_back(uint64_t kept_ns);
  bool take_frequent(const uint8_t* record);
  static bool is_of_measured_thread(const Work& overhead);
  bool is_idle_cost(const Work& cost) const;
  bool has_plausible_times(const Work& work) const;
  void take(const uint8_t* record);
  void take_external_id(const uint8_t* record);
  void note_call(uint32_t correlation, uint32_t thread, uint64_t start);
  void put_external_ids(uint32_t correlation, uint32_t thread, uint64_t start);
  void look_for_work(const Work& work, const uint8_t* record);
  void end_capture(Capture* capture);
  void rest();

  const Client* client_ = nullptr;
  Emitter emitter_;
  CallThreads call_threads_;
  ExternalIds external_ids_;
  Fixture fixture_;
  uint64_t last_pair_ns_ = 0;
  Pace pace_;
  uint64_t records_ns_ = 0;
  RecordCounts counts_;
  uint64_t overhead_ns_ = 0;   ///< that CUPTI tells of itself in the program's threads
  uint64_t last_work_ns_ = 0;  ///< end of the latest work, by CUPTI's clock
  bool has_seen_work_ = false;
  // While no work was seen: launches that worked, but for those of threads that capture.
  uint64_t launch_count_ = 0;
  Capture captures_[kMostCapturing] = {};
  uint32_t capture_count_ = 0;
  uint64_t refused_count_ = 0;  ///< of Missing, when drops were asked for last
  uint64_t flush_ticks_ = 0;    ///< begin of a flush whose buffers are not all read; 0: none
  uint64_t kept_told_ns_ = 0;
  uint32_t flush_errors_ = 0;  ///< in a row
  uint32_t names_told_ = 0;    ///< bits
  uint64_t alone_ids_told_ = 0;
};

}  // namespace aon::cupti
