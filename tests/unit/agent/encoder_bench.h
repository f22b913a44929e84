/// An encoder with everything around it but rings and processes: tests put entries into staging as
/// the drain thread would, and replace the encoder as a restarted worker would.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/agent/encoder.h"
#include "core/base/file.h"
#include "core/spool/block_reader.h"
#include "core/spool/job.h"
#include "core/spool/process_index.h"
#include "core/spool/stream_reader.h"
#include "tests/unit/temporary_folder.h"

namespace aon::agent::test {

/// Thrown by a sink in the place of a SIGKILL.
struct Killed {};

/// The real files, with faults on demand.
class FaultySink : public FolderSink {
 public:
  using FolderSink::FolderSink;
  int open(const std::string& name) override {
    step();
    ++open_count;
    return FolderSink::open(name);
  }
  int write(int fd, std::span<const uint8_t> bytes, uint64_t offset) override {
    step();
    if (before_write) before_write();
    if (error == 0) return FolderSink::write(fd, bytes, offset);
    // A full disk often takes a part.
    FolderSink::write(fd, bytes.first(bytes.size() / 2), offset);
    return error;
  }
  int truncate(int fd, uint64_t bytes) override {
    step();
    return FolderSink::truncate(fd, bytes);
  }
  int sync(int fd) override {
    step();
    ++sync_count;
    return sync_error != 0 ? sync_error : FolderSink::sync(fd);
  }
  int unlink(const std::string& name) override {
    step();
    return FolderSink::unlink(name);
  }
  int rename(const std::string& from, const std::string& to) override {
    step();
    synced_before_rename = sync_count;
    return FolderSink::rename(from, to);
  }
  std::optional<DiskSpace> space() override {
    return free_bytes ? std::optional(DiskSpace{free_bytes(), all_bytes}) : std::nullopt;
  }

  int error = 0;                         ///< errno of every write
  int steps_left = -1;                   ///< operations until Killed is thrown; -1 never
  std::function<uint64_t()> free_bytes;  ///< of the disk; empty: not known
  uint64_t all_bytes = 0;                ///< the same
  int open_count = 0;                    ///< calls of open()
  int sync_count = 0;                    ///< the same of sync()
  int sync_error = 0;                    ///< errno of every one
  int synced_before_rename = 0;          ///< sync_count at the last rename()
  std::function<void()> before_write;    ///< may block

 private:
  void step() {
    if (steps_left == 0) throw Killed{};
    if (steps_left > 0) --steps_left;
  }
};

/// What a reader of the spool finds of one stream.
struct StreamCount {
  uint64_t decoded = 0;
  uint64_t lost[kLossReasonCount] = {};
  bool is_ordered = true;
  uint64_t last = 0;  ///< number of a mark
  std::vector<spool::OpenRegion> last_open;
};

class EncoderBench : public testing::Test {
 protected:
  static constexpr uint64_t kStagingBytes = 1u << 20;

  void SetUp() override {
    std::filesystem::create_directories(node_folder());
    folder_fd_ = open_file(node_folder(), O_RDONLY | O_DIRECTORY).value();
    state_fd_ = State::create().value();
    staging_fd_ = Staging::create(kStagingBytes).value();
    state_ = State::map(state_fd_.get()).value();
    staging_ = Staging::map(staging_fd_.get(), kStagingBytes).value();
    sink_ = std::make_unique<FaultySink>(folder_fd_.get());
    settings_.folder = node_folder();
    settings_.host = "n1";
    settings_.launch_id = "test";
    settings_.node.format = spool::kSpoolFormat;
    settings_.limits = {256u << 20, 16u << 20, 64u << 20};
    settings_.definitions_bytes = 16u << 20;
  }
  void TearDown() override { encoder_.reset(); }

  std::string node_folder() const { return (folder_.path() / "spool" / "n1").string(); }

  /// A new worker's encoder in the same place.
  void restart() {
    encoder_.reset();
    encoder_ =
        std::make_unique<Encoder>(settings_, &state_, &staging_, sink_.get(), &inbox_, &activity_);
    encoder_->resume_tail();
    const Status status = encoder_->restore();
    ASSERT_TRUE(status) << status.error().message;
  }

  /// A flush that is killed at its `steps`th file operation, if there is one; a new worker goes on.
  /// True: it was killed.
  bool flush_and_restart(int steps) {
    sink_->steps_left = steps;
    bool is_killed = false;
    try {
      encoder_->flush();
    } catch (const Killed&) {
      is_killed = true;
    }
    sink_->steps_left = -1;
    restart();
    return is_killed;
  }

  void add_process(uint32_t process) {
    ProcessCell& cell = state_.process(process);
    cell.process = process;
    cell.pid = 1;
    cell.exit_code = -1;
    cell.phase.store(static_cast<uint32_t>(ProcessPhase::kAttached));
    state_.header().process_count.store(process + 1);
  }
  void end_process(uint32_t process) {
    state_.process(process).phase.store(static_cast<uint32_t>(ProcessPhase::kDrained));
  }

  bool push(uint32_t process, uint16_t slot, const std::vector<uint8_t>& bytes, uint32_t counted) {
    const uint32_t cell = state_.find_or_add_stream(process, slot, 0);
    const uint64_t head = state_.header().staging_head.load();
    const uint64_t tail = std::max(encoder_->tail().load(), state_.header().staging_base.load());
    StagingEntry* entry = staging_.reserve(head, tail, static_cast<uint32_t>(bytes.size()));
    if (entry == nullptr) return false;
    entry->stream = cell;
    entry->counted = counted;
    entry->has_position = 0;
    std::memcpy(Staging::records_of(entry), bytes.data(), bytes.size());
    const uint32_t moved = Staging::seal(entry, static_cast<uint32_t>(bytes.size()));
    state_.header().staging_head.store(head + moved);
    return true;
  }
  /// `count` numbered marks, at most one chunk of them.
  bool push_marks(uint32_t process, uint16_t slot, uint32_t count) {
    std::vector<uint8_t> bytes;
    uint64_t& number = numbers_[{process, slot}];
    for (uint32_t i = 0; i < count; ++i) append(&bytes, RecordKind::kMark, 5, ++number);
    return push(process, slot, bytes, count);
  }
  void append(std::vector<uint8_t>* bytes, RecordKind kind, uint32_t id, uint64_t value) {
    RecordHead head{};
    head.start_ticks = ++ticks_ * 100;
    head.kind = kind;
    head.slot_count = 1;
    head.id = id;
    head.a64 = value;
    const auto* from = reinterpret_cast<const uint8_t*>(&head);
    bytes->insert(bytes->end(), from, from + sizeof(head));
  }

  spool::Job read_job() const {
    auto job = spool::read_job(folder_.path());
    EXPECT_TRUE(job);
    return job ? std::move(job).value() : spool::Job{};
  }
  StreamCount count(const spool::Job& job, uint32_t process, uint16_t slot) const {
    StreamCount result;
    const auto segments = spool::list_segments(node_folder());
    const auto names = segments->find(process);
    if (names == segments->end()) return result;
    const auto index = spool::ProcessIndex::build(node_folder(), process, names->second);
    const auto& processes = job.nodes.at(0).processes;
    const auto found = processes.find(process);
    spool::StreamReader reader(*index, found == processes.end() ? nullptr : &found->second, slot);
    uint64_t& last = result.last;
    for (;;) {
      auto batch = reader.next();
      if (!batch || batch->records.empty()) break;
      if (batch->is_resync) result.last_open.assign(batch->open.begin(), batch->open.end());
      for (const Record& record : batch->records) {
        if (!is_counted(record.head.kind)) continue;
        ++result.decoded;
        if (record.head.kind != RecordKind::kMark) continue;
        result.is_ordered = result.is_ordered && record.head.a64 > last;
        last = record.head.a64;
      }
    }
    for (uint32_t i = 0; i < kLossReasonCount; ++i) result.lost[i] = reader.losses().count[i];
    return result;
  }

  aon::test::TemporaryFolder folder_;
  UniqueFd folder_fd_;
  UniqueFd state_fd_;
  UniqueFd staging_fd_;
  State state_;
  Staging staging_;
  std::unique_ptr<FaultySink> sink_;
  Inbox inbox_;
  ActivityTable activity_;
  EncoderSettings settings_;
  std::unique_ptr<Encoder> encoder_;
  std::map<std::pair<uint32_t, uint16_t>, uint64_t> numbers_;
  uint64_t ticks_ = 0;
  std::mt19937_64 random_{1};  ///< values that do not compress
};

}  // namespace aon::agent::test
