#include "core/agent/definitions_log.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/spool/block_reader.h"
#include "core/spool/definitions.h"
#include "core/spool/files.h"

namespace aon::agent {
namespace {

constexpr size_t kMaxPayloadBytes = 1u << 20;  ///< of one block, then the next begins
constexpr size_t kMaxBufferBytes = 16u << 20;  ///< kept while the disk is full
constexpr const char* kTemporaryFile = "definitions.aon.new";

/// What makes a later definition replace an earlier one; type kNone: nothing does.
struct Subject {
  DefinitionType type = DefinitionType::kNone;
  uint32_t process = 0;
  uint64_t detail = 0;
  bool operator==(const Subject&) const = default;
};
struct SubjectHash {
  size_t operator()(const Subject& s) const noexcept {
    return (static_cast<size_t>(s.type) << 56) ^ (size_t{s.process} << 32) ^
           (s.detail * 0x9e3779b97f4a7c15ull);
  }
};

Subject subject_of(const spool::DefinitionView& view) {
  if (view.type == DefinitionType::kStream) {
    const auto d = spool::definition_struct<StreamDefinition>(view.payload);
    if (d) return {view.type, d->process, (uint64_t{d->slot} << 16) | d->context};
  } else if (view.type == DefinitionType::kCounts) {
    const auto d = spool::definition_struct<CountsDefinition>(view.payload);
    if (d) return {view.type, d->process, (uint64_t{d->slot} << 32) | d->region};
  } else if (view.type == DefinitionType::kOpenCall) {
    const auto d = spool::definition_struct<OpenCallDefinition>(view.payload);
    if (d) return {view.type, d->process, d->slot};
  } else if (view.type == DefinitionType::kStack) {
    const auto d = spool::definition_struct<StackDefinition>(view.payload);
    if (d) return {view.type, d->process, static_cast<uint32_t>(d->tid)};
  } else if (view.type == DefinitionType::kUsage) {
    return {view.type, 0, 0};
  }
  return {};
}

using LastIndex = std::unordered_map<Subject, uint64_t, SubjectHash>;

/// Pairings of clocks come every second for as long as the job runs. Once they fill much of the
/// file every second one goes, at each rewrite: the older ones lie wider apart.
class ClockThinning {
 public:
  void count(DefinitionType type, size_t payload_bytes) {
    if (!is_clock(type)) return;
    ++counts_[index(type)];
    bytes_ += payload_bytes + kHeadBytes;
  }
  void begin(uint64_t allowed_bytes) { is_needed_ = bytes_ > allowed_bytes; }
  /// Of each definition in the order of the file: the first and the last stay.
  bool drops(DefinitionType type) {
    if (!is_needed_ || !is_clock(type)) return false;
    const uint64_t number = seen_[index(type)]++;
    return number % 2 == 1 && number + 1 != counts_[index(type)];
  }

 private:
  static constexpr size_t kHeadBytes = 8;
  static bool is_clock(DefinitionType type) {
    return type == DefinitionType::kClock || type == DefinitionType::kClockPing;
  }
  static size_t index(DefinitionType type) { return type == DefinitionType::kClock ? 0 : 1; }

  uint64_t counts_[2] = {};
  uint64_t seen_[2] = {};
  uint64_t bytes_ = 0;
  bool is_needed_ = false;
};

/// What was evicted comes segment by segment for as long as the job runs: what follows one another
/// is one loss.
class LossMerging {
 public:
  void add(const LossDefinition& loss) {
    by_stream_[{loss.process, loss.slot, loss.context, loss.reason}].push_back(loss);
  }
  /// Calls `visit(loss)` for each, those of a process in a row.
  template <class Visit>
  void merge(Visit visit) {
    for (auto& [stream, losses] : by_stream_) {
      std::sort(losses.begin(), losses.end(),
                [](const auto& a, const auto& b) { return a.first_sequence < b.first_sequence; });
      LossDefinition merged = losses.front();
      for (const LossDefinition& next : std::span(losses).subspan(1)) {
        if (next.first_sequence - merged.first_sequence > merged.count) {
          visit(merged);
          merged = next;
          continue;
        }
        const uint64_t end = next.first_sequence - merged.first_sequence + next.count;
        merged.count = std::max(merged.count, end);
        merged.start_ticks = std::min(merged.start_ticks, next.start_ticks);
        merged.end_ticks = std::max(merged.end_ticks, next.end_ticks);
      }
      visit(merged);
    }
  }

 private:
  using Stream = std::tuple<uint32_t, uint16_t, uint16_t, uint32_t>;
  std::map<Stream, std::vector<LossDefinition>> by_stream_;
};

/// What of a file a rewrite keeps, in two looks at each of its definitions.
class Survivors {
 public:
  void look(uint64_t index, const spool::DefinitionView& view) {
    clocks_.count(view.type, view.payload.size());
    const Subject subject = subject_of(view);
    if (subject.type != DefinitionType::kNone) last_[subject] = index;
    if (const auto loss = loss_of(view)) losses_.add(*loss);
  }
  /// Between the two. `clock_bytes`: how much of the file pairings of clocks may fill.
  void begin_again(uint64_t clock_bytes) { clocks_.begin(clock_bytes); }
  bool keeps(uint64_t index, const spool::DefinitionView& view) {
    const Subject subject = subject_of(view);
    if (subject.type != DefinitionType::kNone && last_[subject] != index) return false;
    return !clocks_.drops(view.type) && !loss_of(view);
  }
  /// These stand for all that were not kept.
  LossMerging& losses() { return losses_; }

 private:
  static std::optional<LossDefinition> loss_of(const spool::DefinitionView& view) {
    if (view.type != DefinitionType::kEviction) return std::nullopt;
    return spool::definition_struct<LossDefinition>(view.payload);
  }

  LastIndex last_;
  ClockThinning clocks_;
  LossMerging losses_;
};

/// Calls `visit(process, index, view)` for each definition of the file. Returns how many of its
/// blocks are damaged.
template <class Visit>
Result<uint64_t> for_each_definition(const std::string& path, Visit visit) {
  auto file = spool::BlockFileReader::open(path);
  if (!file) return file.error();
  uint64_t index = 0;
  for (;;) {
    spool::BlockPosition position{};
    auto more = file->next(&position);
    if (!more) return more.error();
    if (!*more) return file->scan().damaged_blocks;
    auto payload = file->payload();
    if (!payload && payload.error().code != Code::kDamaged) return payload.error();
    if (!payload) continue;
    spool::DefinitionCursor cursor(*payload);
    while (auto view = cursor.next()) visit(position.header.process, index++, *view);
  }
}

}  // namespace

DefinitionsLog::~DefinitionsLog() {
  if (fd_ < 0) return;
  sink_->truncate(fd_, file_bytes_);  // gives the reserve back
  sink_->close(fd_);
}

int DefinitionsLog::open_file(const std::string& name) {
  const int fd = sink_->open(name);
  if (fd < 0) return -fd;
  use(fd);
  return 0;
}

void DefinitionsLog::use(int fd) {
  if (fd_ >= 0) sink_->close(fd_);
  fd_ = fd;
  struct stat status {};
  inode_ = ::fstat(fd, &status) == 0 ? status.st_ino : 0;
  reserved_until_ = 0;
}

void DefinitionsLog::keep_reserve() {
  const uint64_t reserve_bytes = std::min(kReserveBytes, limit_bytes_ / 4);
  if (reserved_until_ >= file_bytes_ + reserve_bytes / 2) return;
  if (sink_->reserve(fd_, file_bytes_, reserve_bytes) == 0)
    reserved_until_ = file_bytes_ + reserve_bytes;
}

Status DefinitionsLog::restore(const std::string& folder) {
  const std::string name = spool::kDefinitionsFile;
  if (const int error = open_file(name); error != 0) return errno_error("cannot open", name, error);
  const Progress& progress = state_->header().progress.at(state_->commit());
  // Another inode: a rewrite was not committed yet; it says the same and nothing followed it.
  const bool is_committed = progress.definitions_inode == inode_;
  if (is_committed) {
    file_bytes_ = progress.definitions_bytes;
    block_sequence_ = progress.definitions_block_sequence;
  } else {
    spool::BlockHeader last{};
    auto scan = spool::scan_headers(
        folder + "/" + name,
        [](const spool::BlockPosition& position, void* header) {
          *static_cast<spool::BlockHeader*>(header) = position.header;
        },
        &last);
    if (!scan) return scan.error();
    file_bytes_ = scan->valid_bytes;
    block_sequence_ = last.magic == 0 ? 0 : last.block_sequence + 1;
  }
  compacted_bytes_ = file_bytes_;
  sink_->truncate(fd_, file_bytes_);
  return {};
}

spool::DefinitionBlockWriter& DefinitionsLog::of(uint32_t process) {
  spool::DefinitionBlockWriter& writer = writers_[process];
  if (writer.payload_bytes() > kMaxPayloadBytes) seal(process, &writer);
  return writer;
}

void DefinitionsLog::seal(uint32_t process, spool::DefinitionBlockWriter* writer) {
  if (buffer_.size() > kMaxBufferBytes) {  // the disk has been full for long
    dropped_[process] += writer->count();
    *writer = {};
    return;
  }
  const Status status = writer->seal(&sealer_, process, block_sequence_, 0, &buffer_);
  if (status) {
    ++block_sequence_;
    ++buffered_blocks_;
  } else {
    AON_LOG_ERROR("definitions: %s", status.error().message.c_str());
  }
}

uint64_t DefinitionsLog::take_dropped(uint32_t process) {
  const auto found = dropped_.find(process);
  if (found == dropped_.end()) return 0;
  const uint64_t count = found->second;
  dropped_.erase(found);
  return count;
}

int DefinitionsLog::flush() {
  for (auto& [process, writer] : writers_) {
    if (!writer.is_empty()) seal(process, &writer);
  }
  if (buffer_.empty()) return 0;
  int error = fd_ >= 0 ? 0 : open_file(spool::kDefinitionsFile);
  if (error == 0) error = sink_->write(fd_, buffer_, file_bytes_);
  if (error != 0) {
    if (fd_ >= 0) sink_->truncate(fd_, file_bytes_);
    reserved_until_ = 0;
    return error;
  }
  file_bytes_ += buffer_.size();
  buffer_.clear();
  buffered_blocks_ = 0;
  std::erase_if(writers_, [](const auto& entry) { return entry.second.is_empty(); });
  keep_reserve();
  return 0;
}

void DefinitionsLog::discard_buffered() noexcept {
  block_sequence_ -= buffered_blocks_;
  buffered_blocks_ = 0;
  buffer_.clear();
}

void DefinitionsLog::stage_commit(Progress* progress) const {
  progress->definitions_bytes = file_bytes_;
  progress->definitions_inode = inode_;
  progress->definitions_block_sequence = block_sequence_ - buffered_blocks_;
}

Status DefinitionsLog::compact(const std::string& folder) {
  Status status = rewrite(folder);
  if (!status) compacted_bytes_ = file_bytes_;  // not again at the next flush
  return status;
}

Status DefinitionsLog::rewrite(const std::string& folder) {
  const std::string path = folder + "/" + spool::kDefinitionsFile;
  Survivors survivors;
  const Result<uint64_t> damaged = for_each_definition(
      path, [&](uint32_t, uint64_t index, const auto& view) { survivors.look(index, view); });
  if (!damaged) return damaged.error();
  survivors.begin_again(limit_bytes_ / 4);
  std::vector<uint8_t> bytes;
  uint64_t blocks = *damaged;  // a gap in the numbers goes on telling of them
  spool::DefinitionBlockWriter writer;
  uint32_t current = spool::kNodeProcess;
  const auto end_block = [&] {
    if (!writer.is_empty() && writer.seal(&sealer_, current, blocks, 0, &bytes)) ++blocks;
  };
  const auto begin_of = [&](uint32_t process) {
    if (process != current || writer.payload_bytes() > kMaxPayloadBytes) end_block();
    current = process;
  };
  const Result<uint64_t> again =
      for_each_definition(path, [&](uint32_t process, uint64_t index, const auto& view) {
        if (!survivors.keeps(index, view)) return;
        begin_of(process);
        writer.add(static_cast<uint32_t>(view.type), view.payload);
      });
  if (!again) return again.error();
  survivors.losses().merge([&](const LossDefinition& loss) {
    begin_of(loss.process);
    writer.add(DefinitionType::kEviction, loss);
  });
  end_block();
  sink_->unlink(kTemporaryFile);
  const int fd = sink_->open(kTemporaryFile);
  if (fd < 0) return errno_error("cannot create", kTemporaryFile, -fd);
  int error = sink_->write(fd, bytes, 0);
  // Else a loss of power could leave the name with an empty file, and take all of the job with it.
  // This is rare, and nobody but the encode thread waits.
  if (error == 0) error = sink_->sync(fd);
  if (error == 0) error = sink_->rename(kTemporaryFile, spool::kDefinitionsFile);
  if (error != 0) {
    sink_->close(fd);
    sink_->unlink(kTemporaryFile);
    return errno_error("cannot rewrite", spool::kDefinitionsFile, error);
  }
  use(fd);
  file_bytes_ = bytes.size();
  compacted_bytes_ = file_bytes_;
  block_sequence_ = blocks;
  return {};
}

}  // namespace aon::agent
