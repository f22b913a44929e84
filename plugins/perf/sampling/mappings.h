/// Executable memory of one process: which file lies behind an address. Taken from /proc/PID/maps
/// when the process is first watched, then kept up by the kernel's PERF_RECORD_MMAP2.
///
/// A file is looked at (build-id) when the first call path goes through it, in the mount namespace
/// of the process. One that was deleted or replaced by then has no build-id and " (deleted)" behind
/// its path, as in /proc/PID/maps, so that nobody takes what lies there now for what ran.
/// Thread: the provider's.   Cost: a binary search per look-up; reading one file's notes once.
#pragma once

#include <aon/definition.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "perf/sampling/ring.h"

namespace aon::perf {

/// Build-id of the ELF file at `path`, as bytes; empty when it has none or is no ELF file.
std::string read_build_id(const std::string& path);

/// The same of this kernel's "[vdso]", which all processes of the node share.
std::string read_vdso_build_id();

/// Path of what is mapped in exactly this range of process `pid`, as the kernel has it now; empty
/// when it does not tell.
std::string read_mapped_path(pid_t pid, uint64_t start, uint64_t end);

/// The lines of a /proc/PID/maps that are executable.
std::vector<RawMapping> parse_maps(const std::string& text);

class Mappings {
 public:
  /// A mapping that a call path goes through for the first time.
  struct Used {
    MappingDefinition definition;
    std::string path;
  };
  /// Where an address lies; kNoMapping: in no file, the offset is the address.
  struct Place {
    uint32_t mapping;
    uint64_t offset;
  };
  using BuildIdReader = std::function<std::string(const std::string& path)>;
  using PathReader = std::function<std::string(uint64_t start, uint64_t end)>;

  /// `root` stands before paths of the process: /proc/PID/root.
  Mappings(uint32_t process, uint32_t first_id, std::string root, BuildIdReader reader,
           PathReader path_reader)
      : process_(process),
        next_id_(first_id),
        root_(std::move(root)),
        read_(std::move(reader)),
        read_path_(std::move(path_reader)) {}

  /// False: no address that find() was asked for has changed its meaning.
  bool add(const RawMapping& mapping);
  /// The same with all that is there now: the rest was unmapped.
  bool replace(const std::vector<RawMapping>& mappings);
  Place find(uint64_t address);
  /// True in executable memory of any kind.
  bool is_code(uint64_t address) const;
  /// Those that find() met for the first time since the last call.
  std::vector<Used> take_used();

 private:
  struct Entry {
    RawMapping raw;
    uint32_t id = kNoMapping;
  };
  bool cut(const RawMapping& mapping);
  void use(Entry* entry);
  const std::string& build_id_of(const RawMapping& mapping, const std::string& path);

  uint32_t process_;
  uint32_t next_id_;
  std::string root_;
  BuildIdReader read_;
  PathReader read_path_;
  std::map<uint64_t, Entry> entries_;                                  ///< by start
  std::map<std::pair<std::string, uint64_t>, std::string> build_ids_;  ///< by path and inode
  bool has_unknown_ = false;  ///< find() was asked for what is in no mapping
  std::vector<Used> used_;
};

}  // namespace aon::perf
