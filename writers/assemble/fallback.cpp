#include "writers/assemble/fallback.h"

#include <aon/definition.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <system_error>

#include "core/base/file.h"
#include "core/base/lease.h"
#include "core/ring/memory.h"
#include "core/ring/reader.h"
#include "core/spool/block_writer.h"
#include "core/spool/files.h"
#include "writers/assemble/leftover_rings.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kProcess = 0;  ///< number of the only process in the new folder
constexpr size_t kDefinitionBlockBytes = 1u << 20;

/// Puts the fragments of definitions from slot 0 together again.
class DefinitionCollector {
 public:
  explicit DefinitionCollector(spool::DefinitionBlockWriter* out) : out_(out) {}

  void add(std::span<const uint8_t> bytes) {
    while (bytes.size() >= kSlotBytes) {
      RecordHead head;
      std::memcpy(&head, bytes.data(), sizeof(head));
      const size_t record_bytes = size_t{head.slot_count} * kSlotBytes;
      if (!is_valid(head) || record_bytes > bytes.size()) return;
      if (head.kind == RecordKind::kDefinition) add_fragment(head, bytes.subspan(kSlotBytes));
      bytes = bytes.subspan(record_bytes);
    }
  }

 private:
  void add_fragment(const RecordHead& head, std::span<const uint8_t> payload) {
    if (head.a64 == 0) {
      type_ = head.id;
      total_bytes_ = std::min(head.a32, kMaxDefinitionBytes);
      bytes_.clear();
    }
    if (head.id != type_ || head.a64 != bytes_.size()) return;
    const size_t wanted = total_bytes_ - bytes_.size();
    const size_t here = (head.slot_count - 1u) * kSlotBytes;
    const auto part = payload.first(std::min(wanted, here));
    bytes_.insert(bytes_.end(), part.begin(), part.end());
    if (bytes_.size() == total_bytes_) out_->add(type_, bytes_);
  }

  spool::DefinitionBlockWriter* out_;
  uint32_t type_ = 0;
  uint32_t total_bytes_ = 0;
  std::vector<uint8_t> bytes_;
};

class RingConverter final : public ring::Sink {
 public:
  RingConverter(ring::RingImage image, std::string host)
      : image_(std::move(image)),
        host_(std::move(host)),
        reader_(image_.base(), image_.geometry, false),
        collector_(&definitions_) {}

  /// Fills the files of `folder`, which exists.
  Status write(const fs::path& folder);

  // ring::Sink.
  bool take(const ring::Piece& piece) override;
  void moved(uint32_t, uint32_t, const ring::StreamPosition&) override {}

 private:
  struct Stream {
    uint64_t committed = 0;  ///< written into blocks
    uint64_t last_ticks = 0;
    uint64_t cut = 0;  ///< records behind one that did not validate
    spool::OpenStack open;
  };

  void add_bytes(uint32_t slot, uint32_t context, std::span<const uint8_t> bytes, uint32_t counted);
  void note_open_calls();
  void add_open_calls();
  void seal_definitions();
  void add_node();
  void add_process();
  void add_streams();
  void add_counts(uint32_t slot);
  uint64_t end_ticks() const { return std::max(image_.clock_last.ticks, last_ticks_); }

  ring::RingImage image_;
  std::string host_;
  ring::RingReader reader_;
  spool::DefinitionBlockWriter definitions_;
  DefinitionCollector collector_;
  std::map<std::pair<uint32_t, uint32_t>, Stream> streams_;
  spool::RecordBlockWriter writer_;
  uint64_t block_sequence_ = 0;
  uint64_t last_ticks_ = 0;
  std::vector<uint8_t> out_;
  spool::BlockSealer sealer_;
  uint64_t definition_block_ = 0;
  std::vector<uint8_t> definition_blocks_;
  Status status_;
};

bool RingConverter::take(const ring::Piece& piece) {
  if (piece.slot == kDefinitionSlot) {
    collector_.add(piece.bytes);
    if (definitions_.payload_bytes() > kDefinitionBlockBytes) seal_definitions();
    return static_cast<bool>(status_);
  }
  add_bytes(piece.slot, piece.context, piece.bytes, piece.counted);
  return static_cast<bool>(status_);
}

void RingConverter::add_bytes(uint32_t slot, uint32_t context, std::span<const uint8_t> bytes,
                              uint32_t counted) {
  Stream& stream = streams_[{slot, context}];
  uint64_t written = 0;
  bool is_refused = false;
  while (!bytes.empty() && !is_refused) {
    writer_.begin(kProcess, static_cast<uint16_t>(slot), static_cast<uint16_t>(context),
                  stream.committed, context == 0 ? &stream.open : nullptr);
    const size_t taken = writer_.add(bytes, &is_refused);
    Result<spool::BlockHeader> header = writer_.seal(block_sequence_, &out_);
    if (!header) {
      status_ = header.error();
      return;
    }
    if (header->record_count != 0) ++block_sequence_;
    written += header->counted_count;
    stream.committed += header->counted_count;
    stream.last_ticks = std::max(stream.last_ticks, header->last_ticks);
    last_ticks_ = std::max(last_ticks_, stream.last_ticks);
    if (taken == 0) break;
    bytes = bytes.subspan(taken);
  }
  if (counted > written) stream.cut += counted - written;
}

void RingConverter::seal_definitions() {
  Status status =
      definitions_.seal(&sealer_, kProcess, definition_block_++, end_ticks(), &definition_blocks_);
  if (!status) status_ = status;
}

/// The process lived until its last call began, which need not have returned: no record is later.
void RingConverter::note_open_calls() {
  constexpr uint64_t kPlausibleTicks = uint64_t{1} << 57;  // of a clock of 5 GHz: 333 days
  const uint64_t latest = image_.clock_first.ticks + kPlausibleTicks;
  for (uint32_t slot = kMainThreadSlot; slot < reader_.slots_used(); ++slot) {
    for (const Record& call : reader_.open_calls(slot, latest))
      last_ticks_ = std::max(last_ticks_, call.head.start_ticks);
  }
}

/// Calls that had not returned when the process ended; outermost first.
void RingConverter::add_open_calls() {
  for (uint32_t slot = kMainThreadSlot; slot < reader_.slots_used(); ++slot) {
    std::vector<uint8_t> bytes;
    uint32_t counted = 0;
    for (const Record& call : reader_.open_calls(slot, end_ticks())) {
      const auto* first = reinterpret_cast<const uint8_t*>(&call);
      bytes.insert(bytes.end(), first, first + size_t{call.head.slot_count} * kSlotBytes);
      ++counted;
    }
    if (counted != 0) add_bytes(slot, 0, bytes, counted);
  }
}

void RingConverter::add_node() {
  NodeDefinition node{};
  node.format = spool::kSpoolFormat;
  node.clock_is_tsc = image_.clock_is_tsc ? 1 : 0;
  definitions_.add(DefinitionType::kNode, node, {host_, ""});
  for (const ClockPair& pair : {image_.clock_first, image_.clock_last}) {
    definitions_.add(DefinitionType::kClock, ClockDefinition{pair.ticks, pair.monotonic_raw_ns,
                                                             pair.realtime_ns, pair.bracket_ticks});
  }
}

/// What to do about it.
const char* remedy_of(NoAgent reason) {
  switch (reason) {
    case NoAgent::kOfAnotherUser:
      return "another user's program listens at AON_SOCKET on this node; start it here by aon-run";
    case NoAgent::kUnsealed:
      return "what listens at AON_SOCKET gave memory without seals; start it here by aon-run";
    default:
      return "see what aon-run said; else --attach-ms";
  }
}

void RingConverter::add_process() {
  const ProcessIdentity& identity = image_.identity;
  ProcessStartDefinition start{};
  start.process = kProcess;
  start.pid = identity.pid;
  start.start_time_ticks = identity.start_time_ticks;
  start.attach_ticks = image_.clock_first.ticks;
  start.rank = identity.rank;
  start.world_size = identity.world_size;
  start.fallback = 1;
  definitions_.add(DefinitionType::kProcessStart, start, {identity.program, host_});
  // What an agent collects of a process beside what it writes itself.
  for (const char* name : {"perf", "process", "sampling"}) {
    definitions_.add(DefinitionType::kProvider, ProviderDefinition{ProviderState::kOff, {}},
                     {name, kNoAgent, remedy_of(identity.no_agent)});
  }
  ProcessExitDefinition exit{};
  exit.process = kProcess;
  exit.exit_code = -1;
  exit.end_ticks = end_ticks();
  exit.memory_bytes = image_.geometry.total_bytes;
  definitions_.add(DefinitionType::kProcessExit, exit);
}

void RingConverter::add_streams() {
  if (const uint64_t refused = reader_.refused(kDefinitionSlot, 0); refused != 0) {
    StreamDefinition definitions{};
    definitions.process = kProcess;
    definitions.refused = refused;
    definitions_.add(DefinitionType::kStream, definitions);
  }
  for (uint32_t slot = kMainThreadSlot; slot < reader_.slots_used(); ++slot) {
    for (uint32_t context = 0; context < kContexts; ++context) {
      uint64_t refused = reader_.refused(slot, context);
      const bool is_first = slot == kMainThreadSlot && context == 0;
      if (is_first) refused += reader_.refused_no_slot();
      const auto found = streams_.find({slot, context});
      if (found == streams_.end() && refused == 0 && !is_first) continue;
      StreamDefinition stream{};
      stream.process = kProcess;
      stream.slot = static_cast<uint16_t>(slot);
      stream.context = static_cast<uint16_t>(context);
      stream.tid = reader_.tid(slot);
      stream.thread_count = 1;
      if (found != streams_.end()) {
        stream.committed = found->second.committed;
        stream.stream_cut = found->second.cut;
      }
      const uint64_t known = stream.committed + stream.stream_cut;
      const uint64_t highest = reader_.cut_count(slot, context);
      if (highest > known) stream.stream_cut += highest - known;
      stream.refused = refused;
      // Nobody made room: what was refused came behind the last record.
      stream.first_refused_ticks = found != streams_.end() ? found->second.last_ticks : 0;
      stream.last_refused_ticks = end_ticks();
      definitions_.add(DefinitionType::kStream, stream);
    }
    add_counts(slot);
  }
}

void RingConverter::add_counts(uint32_t slot) {
  std::array<uint64_t, kMaxCounters> counters{};
  if (!reader_.counters(slot, counters)) return;
  for (uint32_t region = 0; region < kMaxCounters; ++region) {
    if (counters[region] == 0) continue;
    definitions_.add(DefinitionType::kCounts,
                     CountsDefinition{kProcess, slot, region, 0, counters[region]});
  }
}

Status write_file(const fs::path& path, const std::vector<uint8_t>& bytes) {
  Result<UniqueFd> fd = open_file(path.string(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
  if (!fd) return fd.error();
  Status status = write_all(fd->get(), bytes.data(), bytes.size());
  if (status && fsync(fd->get()) != 0) return errno_error("sync", path.string(), errno);
  return status;
}

Status RingConverter::write(const fs::path& folder) {
  add_node();
  reader_.drain(*this);
  note_open_calls();
  add_open_calls();
  if (!status_) return status_;
  add_process();
  add_streams();
  Status status = write_file(folder / spool::segment_file_name({kProcess, std::nullopt, 0}), out_);
  if (!status) return status;
  seal_definitions();
  if (!status_) return status_;
  return write_file(folder / spool::kDefinitionsFile, definition_blocks_);
}

/// True while the process that writes the ring runs on this host. From elsewhere nobody can tell;
/// the assembler is started when the job is over.
bool is_running(const ProcessIdentity& identity, const std::string& host) {
  if (host != local_host_name()) return false;
  const uint64_t start = process_start_time_ticks(identity.pid);
  return start != 0 && start == identity.start_time_ticks;
}

/// Converts one ring. A line when it cannot be read.   Errors: kIo of what is written.
Result<std::optional<std::string>> convert(const fs::path& ring_file, const fs::path& spool,
                                           const fs::path& scratch) {
  const std::string host = ring_file.parent_path().filename().string();
  std::error_code error;
  // One of the folder that was asked for may have the name of one that is here.
  const bool is_here = fs::equivalent(ring_file.parent_path().parent_path(), spool, error);
  const fs::path target =
      spool / (host + "~" + ring_file.stem().string() + (is_here ? "" : "-asked"));
  const bool is_empty = fs::file_size(ring_file, error) == 0;  // made on a full disk
  if (!is_empty && !fs::exists(target, error)) {
    Result<ring::RingImage> image = ring::read_ring_file(ring_file.string());
    if (!image) return std::optional<std::string>(image.error().message);
    if (is_running(image->identity, host)) {
      return std::optional<std::string>(ring_file.string() + ": its process still runs");
    }
    const fs::path fresh = scratch / target.filename();
    if (mkdir(fresh.c_str(), 0700) != 0) return errno_error("create", fresh.string(), errno);
    RingConverter converter(std::move(*image), host);
    Status status = converter.write(fresh);
    if (!status) return status.error();
    if (rename(fresh.c_str(), target.c_str()) != 0) {
      return errno_error("rename", fresh.string(), errno);
    }
  }
  if (unlink(ring_file.c_str()) != 0) return errno_error("remove", ring_file.string(), errno);
  return std::optional<std::string>();
}

/// Processes that have neither an agent's ring nor one of their own: each left a byte in a file, or
/// a link where it could not have a descriptor.
uintmax_t count_unrecorded(const fs::path& node) {
  std::error_code error;
  uintmax_t count = fs::file_size(node / "unrecorded", error);
  if (error) count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(node, error)) {
    if (entry.path().filename().native().rfind("unrecorded-", 0) == 0) ++count;
  }
  return count;
}

/// Empty for none.
std::string unrecorded_line(const fs::path& node) {
  const uintmax_t count = count_unrecorded(node);
  if (count == 0) return "";
  return std::to_string(count) + (count == 1 ? " process" : " processes") + " on " +
         node.filename().string() +
         " could have neither an agent's memory nor a file of their own (--disk, the disk, ulimit "
         "-f, -n or -v, no thread key left, Linux before 4.14, musl in place of glibc, or a child "
         "in the memory of its parent, of whose children one is counted): of their own nothing is "
         "recorded";
}

}  // namespace

Result<std::vector<std::string>> convert_leftover_rings(const fs::path& folder,
                                                        const fs::path& scratch) {
  std::vector<std::string> lines;
  const LeftoverRings rings = find_leftover_rings(folder);
  for (const StrayRing& stray : rings.strays) lines.push_back(describe(stray));
  for (const fs::path& ring_file : rings.own) {
    Result<std::optional<std::string>> line = convert(ring_file, folder / "spool", scratch);
    if (!line) return line.error();
    if (*line) lines.push_back(**line);
  }
  std::error_code error;
  for (const fs::directory_entry& node : fs::directory_iterator(folder / "spool", error)) {
    if (std::string line = unrecorded_line(node.path()); !line.empty())
      lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace aon::writers
