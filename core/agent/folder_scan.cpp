#include "core/agent/folder_scan.h"

#include <algorithm>

#include "core/spool/block_reader.h"
#include "core/spool/files.h"
#include "core/spool/format.h"

namespace aon::agent {
namespace {

void raise_to(uint32_t process, uint32_t* next) {
  if (process != spool::kNodeProcess) *next = std::max(*next, process + 1);
}

}  // namespace

uint32_t next_process_number(const std::string& folder) {
  uint32_t next = 0;
  if (auto listed = spool::list_segments(folder)) {
    for (const auto& [process, names] : *listed) raise_to(process, &next);
  }
  // Definitions stand in blocks of their process, so the headers say enough.
  auto scanned = spool::scan_headers(
      folder + "/" + spool::kDefinitionsFile,
      [](const spool::BlockPosition& position, void* out) {
        raise_to(position.header.process, static_cast<uint32_t*>(out));
      },
      &next);
  static_cast<void>(scanned);
  return next;
}

}  // namespace aon::agent
