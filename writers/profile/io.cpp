#include "writers/profile/io.h"

#include <algorithm>

namespace aon::writers::profile {

void IoTable::begin(const Group& group) {
  calls_.clear();
  if (group_ == &group) return;
  group_ = &group;
  files_ = LocalIds(group.file_map);
}

void IoTable::add(const Event& event) {
  switch (event.kind) {
    case EventKind::kEnter:
      calls_.push_back({event.time_ns, 0});
      break;
    case EventKind::kLeave:
      leave(event.time_ns);
      break;
    case EventKind::kIoOpen:
    case EventKind::kIoClose:
    case EventKind::kIoDelete:
    case EventKind::kIoSeek:
    case EventKind::kIoBegin:
    case EventKind::kIoComplete:
      add_io(event);
      break;
    default:
      break;
  }
}

uint32_t IoTable::row_of(const Event& event) {
  Files& files = groups_[group_->id];
  if (files.rows.empty()) {
    files.rows.emplace_back().group = group_->id;
  }
  const uint32_t file = files_.global(event.file());
  if (file == LocalIds::kNone) return 0;
  const auto found = files.row_of_file.find(file);
  if (found != files.row_of_file.end()) return found->second;
  if (files.rows.size() > kMaxFiles) return 0;
  const auto row = static_cast<uint32_t>(files.rows.size());
  files.rows.emplace_back().group = group_->id;
  files.rows.back().file = file;
  files.row_of_file[file] = row;
  return row;
}

void IoTable::add_io(const Event& event) {
  const uint32_t index = row_of(event);
  IoRow& row = groups_[group_->id].rows[index];
  const bool is_read = event.io_operation() == IoOperation::kRead;
  const bool is_write = event.io_operation() == IoOperation::kWrite;
  const bool is_collective = (event.io_flags() & kIoCollective) != 0;
  if (event.kind == EventKind::kIoBegin) {
    row.reads += is_read ? 1 : 0;
    row.writes += is_write ? 1 : 0;
    row.collective_count += is_collective && (is_read || is_write) ? 1 : 0;
  } else if (event.kind == EventKind::kIoComplete) {
    row.bytes_read += is_read ? event.bytes : 0;
    row.bytes_written += is_write ? event.bytes : 0;
    row.collective_bytes += is_collective ? event.bytes : 0;
    if ((event.io_flags() & kIoNonblocking) != 0) return;  // in a call that waits
  }
  if (calls_.empty()) return;
  calls_.back().row = index;
  calls_.back().part = is_read ? Part::kRead : is_write ? Part::kWrite : Part::kOther;
}

void IoTable::leave(uint64_t time_ns) {
  if (calls_.empty()) return;
  const Call call = calls_.back();
  calls_.pop_back();
  if (call.part == Part::kNone) return;
  IoRow& row = groups_[group_->id].rows[call.row];
  uint64_t& sum = call.part == Part::kRead    ? row.read_ns
                  : call.part == Part::kWrite ? row.write_ns
                                              : row.other_ns;
  sum += time_ns - call.enter_ns;
}

std::vector<IoRow> IoTable::rows() const {
  std::vector<IoRow> rows;
  for (const Files& files : groups_) {
    for (const IoRow& row : files.rows) {
      const bool is_used = row.reads + row.writes + row.read_ns + row.write_ns + row.other_ns != 0;
      if (row.file != kOtherFile || is_used) rows.push_back(row);
    }
  }
  std::sort(rows.begin(), rows.end(), [](const IoRow& a, const IoRow& b) {
    return a.group != b.group ? a.group < b.group : a.file < b.file;
  });
  return rows;
}

}  // namespace aon::writers::profile
