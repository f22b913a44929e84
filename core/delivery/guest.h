/// What a receiver (receiver.h) knows of one courier, and of the part that comes in from it.
/// Owner: the receiver.   Thread: its.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/unique_fd.h"
#include "core/cluster/frames.h"
#include "core/delivery/marks.h"
#include "core/delivery/names.h"
#include "core/delivery/receiver.h"

namespace aon::delivery {

struct Receiver::Guest {
  UniqueFd fd;
  cluster::Nonce nonce{};
  cluster::FrameBuffer frame;
  int64_t heard_ms = 0;
  int64_t beaten_ms = 0;
  std::string node;                  ///< empty: has not proved to be one of us
  std::string agent;                 ///< node, pid and start time
  std::optional<Marks> marks;        ///< set with its offer
  std::shared_ptr<UniqueFd> folder;  ///< set with its offer; what is synced has it, too
  bool is_closed = false;            ///< nothing comes any more
  int64_t closed_ms = 0;             ///< when that was
  bool is_synced = false;            ///< all that came
  bool is_complete = false;          ///< and is marked
  struct stat ledger {};             ///< of the archive that was there before
  bool is_assembled = false;
  bool is_refused = false;
  std::map<std::string, uint64_t> file_bytes;  ///< of what it brought
  uint64_t stored_bytes = 0;  ///< the sum: asked for with every part of every guest

  // The part that comes in.
  cluster::Part part{};
  std::string part_of;  ///< file name; empty: none
  uint32_t part_left = 0;
  UniqueFd part_file;

  void store(const std::string& name, uint64_t bytes) {
    stored_bytes += bytes - std::exchange(file_bytes[name], bytes);
  }
  /// Of a file that is not whole yet.
  uint64_t begun_bytes() const {
    const bool is_begun = !part_of.empty() && part.mode == cluster::PartMode::kWhole;
    return is_begun ? part.offset + part.byte_count : 0;
  }
  /// It is no file of a spool.
  void give_up_part() {
    if (folder && !part_of.empty()) unlinkat(folder->get(), part_name(part_of).c_str(), 0);
    part_of.clear();
    part_left = 0;
    part_file.reset();
  }
};

}  // namespace aon::delivery
