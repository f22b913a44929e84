/// What each process did with each file: how often it read and wrote, how much, and how long its
/// calls took. Each group keeps the first kMaxFiles files exactly; the rest is summed up as
/// "other".
///
/// | figure            | meaning                                                                |
/// |-------------------|------------------------------------------------------------------------|
/// | reads, writes     | transfers that were begun                                              |
/// | bytes read, written | what they moved, as the status of each said                          |
/// | read_ns, write_ns | time in the calls that make or begin a transfer, and in the second     |
/// |                   | halves of split ones; not the waiting for a request                    |
/// | other_ns          | time in the calls that open, change, close, sync, seek and delete      |
/// | collective_count  | reads and writes that all processes of the file make together          |
/// | collective_bytes  | what those moved                                                       |
///
/// Thread: one.   Cost: O(1) per event; memory at most 64 rows per group.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "writers/profile/local_ids.h"
#include "writers/writer.h"

namespace aon::writers::profile {

constexpr size_t kMaxFiles = 64;
constexpr int64_t kOtherFile = -1;  ///< beyond kMaxFiles, or deleted without having been opened

struct IoRow {
  uint32_t group = 0;
  int64_t file = kOtherFile;  ///< global id
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint64_t read_ns = 0;
  uint64_t write_ns = 0;
  uint64_t other_ns = 0;
  uint64_t collective_count = 0;
  uint64_t collective_bytes = 0;
};

class IoTable {
 public:
  explicit IoTable(const Model& model) : group_count_(model.groups.size()) {}

  /// The events that follow are those of a location of `group`.
  void begin(const Group& group);
  void add(const Event& event);

  /// By group and file, "other" first.
  std::vector<IoRow> rows() const;

  void save(StateOut* out);
  Status load(StateIn* in);

 private:
  enum class Part : uint8_t { kNone, kRead, kWrite, kOther };
  struct Call {
    uint64_t enter_ns;
    uint32_t row;
    Part part = Part::kNone;
  };
  struct Files {
    std::vector<IoRow> rows;  ///< the first is "other"
    std::unordered_map<uint32_t, uint32_t> row_of_file;
    /// Index of the row of `file` (global id, kNone); makes one.
    uint32_t row_of(uint32_t file, uint32_t group);
  };

  void add_io(const Event& event);
  void leave(uint64_t time_ns);

  size_t group_count_;
  std::map<uint32_t, Files> groups_;
  std::vector<Call> calls_;  ///< open ones
  LocalIds files_;
  const Group* group_ = nullptr;
  Files* current_ = nullptr;  ///< of `group_`
};

}  // namespace aon::writers::profile
