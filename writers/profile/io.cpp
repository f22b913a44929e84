#include "writers/profile/io.h"

#include <algorithm>

namespace aon::writers::profile {

void IoTable::begin(const Group& group) {
  calls_.clear();
  if (group_ == &group) return;
  group_ = &group;
  current_ = &groups_[group.id];
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
    case EventKind::kIoChange:
    case EventKind::kIoBegin:
    case EventKind::kIoComplete:
      add_io(event);
      break;
    default:
      break;
  }
}

uint32_t IoTable::Files::row_of(uint32_t file, uint32_t group) {
  if (rows.empty()) {
    rows.emplace_back().group = group;
  }
  if (file == LocalIds::kNone) return 0;
  const auto found = row_of_file.find(file);
  if (found != row_of_file.end()) return found->second;
  if (rows.size() > kMaxFiles) return 0;
  const auto row = static_cast<uint32_t>(rows.size());
  rows.emplace_back().group = group;
  rows.back().file = file;
  row_of_file[file] = row;
  return row;
}

void IoTable::add_io(const Event& event) {
  const uint32_t index = current_->row_of(files_.global(event.file()), group_->id);
  IoRow& row = current_->rows[index];
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
  IoRow& row = current_->rows[call.row];
  uint64_t& sum = call.part == Part::kRead    ? row.read_ns
                  : call.part == Part::kWrite ? row.write_ns
                                              : row.other_ns;
  sum += time_ns - call.enter_ns;
}

std::vector<IoRow> IoTable::rows() const {
  std::vector<IoRow> rows;
  for (const auto& [group, files] : groups_) {
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

void IoTable::save(StateOut* out) {
  out->put(rows());
  groups_.clear();
  calls_.clear();
  group_ = nullptr;
}

Status IoTable::load(StateIn* in) {
  std::vector<IoRow> rows;
  if (!in->get(&rows)) return in->status();
  for (const IoRow& row : rows) {
    if (row.group >= group_count_) return unknown_id("process");
    const uint32_t file = row.file < 0 ? LocalIds::kNone : static_cast<uint32_t>(row.file);
    Files& files = groups_[row.group];
    IoRow& sum = files.rows[files.row_of(file, row.group)];
    sum.reads += row.reads;
    sum.writes += row.writes;
    sum.bytes_read += row.bytes_read;
    sum.bytes_written += row.bytes_written;
    sum.read_ns += row.read_ns;
    sum.write_ns += row.write_ns;
    sum.other_ns += row.other_ns;
    sum.collective_count += row.collective_count;
    sum.collective_bytes += row.collective_bytes;
  }
  return {};
}

}  // namespace aon::writers::profile
