// Ring of a process that found no agent: a file in the job directory that `aon finalize` reads.
// Nobody drains it: when it is full, records are refused and counted. All rings of a node stay
// below half of --disk: each gets a part of what those before it left, and when nothing is left a
// process is only counted, by one byte in a file beside them, or a link.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "core/base/disable.h"
#include "core/runtime/launch_mark.h"
#include "core/runtime/output_folder.h"
#include "core/runtime/process.h"

namespace aon::runtime {
namespace {

constexpr uint64_t kDefaultBytes = 8u << 20;
constexpr uint64_t kLeastBytes = 1u << 20;
constexpr uint64_t kMostBytes = 1u << 30;
constexpr uint32_t kFewSlots = 64;  ///< in a ring of less than kLeastBytes
constexpr uint64_t kSmallestBytes = 256u << 10;
constexpr uint64_t kDefaultDiskBytes = 1u << 30;
constexpr uint64_t kPartOfRoom = 16;  ///< a ring takes at most so much of what is left
constexpr int kMostPrograms = 64;     ///< of one process, one after the other

/// A number with K, M or G behind it; 0: none.
uint64_t bytes_of(const char* variable) {
  const char* text = secure_getenv(variable);
  if (text == nullptr) return 0;
  char* end = nullptr;
  uint64_t bytes = strtoull(text, &end, 10);
  if (*end == 'K' || *end == 'k') bytes <<= 10;
  if (*end == 'M' || *end == 'm') bytes <<= 20;
  if (*end == 'G' || *end == 'g') bytes <<= 30;
  return bytes;
}

uint64_t wanted_bytes() {
  const uint64_t bytes = bytes_of("AON_MEMORY");
  return bytes == 0 ? kDefaultBytes : std::clamp(bytes, kLeastBytes, kMostBytes);
}

uint32_t slots_of(uint64_t chunk_bytes) {
  return chunk_bytes < kLeastBytes ? kFewSlots : kMaxThreadSlots;
}

RingGeometry geometry_of(uint64_t chunk_bytes) {
  return ring_geometry(slots_of(chunk_bytes), static_cast<uint32_t>(chunk_bytes / kChunkBytes));
}

uint64_t file_bytes(uint64_t chunk_bytes) { return geometry_of(chunk_bytes).total_bytes; }

/// Bytes of chunks for the ring that is the `number`-th of its node, from 1; 0: nothing is left.
/// The same for all processes of a launch, so that none has to look at the others' sizes.
uint64_t share_of_disk(uint64_t number) {
  const uint64_t asked = bytes_of("AON_DISK");
  uint64_t room = (asked == 0 ? kDefaultDiskBytes : asked) / 2;
  const uint64_t wanted = wanted_bytes();
  for (;;) {
    const uint64_t bytes = std::clamp(room / kPartOfRoom, kSmallestBytes, wanted);
    if (file_bytes(bytes) > room) return 0;
    if (--number == 0) return bytes;
    room -= file_bytes(bytes);
  }
}

using RingName = char[64];

/// Opens fallback-PID-START.ring for writing; of a process that has called exec(),
/// fallback-PID-START-N.ring of its N-th program. -1: not possible.
int create_file(int folder, const ProcessIdentity& identity, RingName& name) {
  const auto start = static_cast<unsigned long long>(identity.start_time_ticks);
  for (int program = 1; program <= kMostPrograms; ++program) {
    char number[16] = "";
    if (program > 1) snprintf(number, sizeof number, "-%d", program);
    snprintf(name, sizeof name, "fallback-%d-%llu%s.ring", identity.pid, start, number);
    const int fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) fchmod(fd, 0600);  // whatever the umask of the program is
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

/// Rings in `folder`. Two processes that come at once may both count both: too many, never too few.
/// Not by opendir(), which allocates.
uint64_t count_rings(int folder) {
  struct Entry {  // linux_dirent64
    uint64_t inode;
    int64_t next;
    uint16_t byte_count;
    uint8_t type;
    char name[1];
  };
  alignas(Entry) char buffer[512];  // an entry takes at most 280
  uint64_t count = 0;
  for (;;) {
    const long got = syscall(SYS_getdents64, folder, buffer, sizeof buffer);
    if (got <= 0) return std::max<uint64_t>(count, 1);
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const Entry*>(buffer + at);
      if (strncmp(entry->name, "fallback-", 9) == 0) ++count;
      at += entry->byte_count;
    }
  }
}

/// A TaskProlog says what folder was asked for; aon-run, which of its launch.
uint64_t mark_of_launch() {
  const char* door = secure_getenv("AON_DOOR");
  const char* socket = secure_getenv("AON_SOCKET");
  if (door == nullptr || socket == nullptr || strcmp(door, socket) != 0) return 0;
  return launch_mark([](const char* name) -> const char* { return secure_getenv(name); });
}

void fill_header(Process& p, const ProcessIdentity& identity) {
  RingHeader& header = *p.ring;
  header.abi = kRingAbi;
  header.clock_is_tsc = tsc_is_constant() ? 1 : 0;
  header.slot_count = p.geometry.slot_count;
  header.chunk_count = p.geometry.chunk_count;
  header.modes_offset = p.geometry.modes_offset;
  header.slots_offset = p.geometry.slots_offset;
  header.free_map_offset = p.geometry.free_map_offset;
  header.chunks_offset = p.geometry.chunks_offset;
  header.total_bytes = p.geometry.total_bytes;
  header.process = UINT32_MAX;
  header.identity = identity;
  header.launch_mark = mark_of_launch();
  header.clock_first = read_clock_pair(header.clock_is_tsc != 0);
  header.clock_last = header.clock_first;
  for (uint32_t i = 0; i < p.geometry.slot_count; ++i) {
    for (StreamState& stream : p.slots[i].stream) stream.first_chunk = kNoChunk;
    p.slots[i].counter_chunk = kNoChunk;
    for (std::atomic<uint32_t>& chunk : p.slots[i].stack_chunk) chunk = kNoChunk;
  }
  for (uint32_t i = 0; i < p.geometry.chunk_count; ++i) {
    p.free_map[i / 64].fetch_or(uint64_t{1} << (i % 64), std::memory_order_relaxed);
  }
  header.magic = kRingMagic;
}

/// At most `chunk_bytes`, below the process's file size limit: beyond it the kernel would send
/// SIGXFSZ to the program. 0: there is no room for a ring.
uint64_t allowed_bytes(uint64_t chunk_bytes) {
  rlimit limit = {};
  getrlimit(RLIMIT_FSIZE, &limit);
  const uint64_t allowed = limit.rlim_cur;
  constexpr uint64_t kLargestOfFew = kLeastBytes - kChunkBytes;
  const uint64_t fixed_bytes = file_bytes(kMostBytes) - kMostBytes;
  const uint64_t fixed_of_few = file_bytes(kLargestOfFew) - kLargestOfFew;
  if (allowed >= fixed_bytes + kLeastBytes) return std::min(chunk_bytes, allowed - fixed_bytes);
  if (allowed < fixed_of_few + kChunkBytes) return 0;
  return std::min({chunk_bytes, allowed - fixed_of_few, kLargestOfFew});
}

/// The ring of this process, or MAP_FAILED. Allocated before it is mapped: a store into a hole of a
/// full file system raises SIGBUS.
void* map_file(int folder, const ProcessIdentity& identity, RingGeometry* geometry) {
  RingName name;
  const int fd = create_file(folder, identity, name);
  if (fd < 0) return MAP_FAILED;
  *geometry = geometry_of(allowed_bytes(share_of_disk(count_rings(folder))));
  const uint64_t bytes = geometry->total_bytes;
  void* mapping = MAP_FAILED;
  if (geometry->chunk_count != 0 && posix_fallocate(fd, 0, static_cast<off_t>(bytes)) == 0)
    mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapping == MAP_FAILED) unlinkat(folder, name, 0);
  return mapping;
}

/// Appends a byte to a file that all processes of the node share. False: not possible.
bool append_byte(int folder) {
  rlimit limit = {};
  getrlimit(RLIMIT_FSIZE, &limit);
  if (limit.rlim_cur < kSmallestBytes) return false;  // a byte beyond it would raise SIGXFSZ
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
  const int fd = openat(folder, "unrecorded", flags, 0600);
  if (fd < 0) return false;
  fchmod(fd, 0600);  // whatever the umask of the program is
  const bool is_written = write(fd, "1", 1) == 1;
  close(fd);
  return is_written;
}

/// A link takes no descriptor; where none was left for `folder`, -1, its name has to do.
void leave_link(int folder, char (&path)[PATH_MAX]) {
  size_t length = 0;
  if (folder < 0) {
    if (!find_node_folder(path)) return;
    length = strlen(path);
    path[length++] = '/';
  }
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const size_t room = sizeof path - length;
  const int bytes = snprintf(path + length, room, "unrecorded-%d-%lld%09ld", getpid(),
                             static_cast<long long>(now.tv_sec), now.tv_nsec);
  if (bytes < 0 || static_cast<size_t>(bytes) >= room) return;
  if (symlinkat("unrecorded", folder < 0 ? AT_FDCWD : folder, path) != 0) {
    // Not even for that; nobody can be told.
  }
}

}  // namespace

void count_unrecorded(char (&path)[PATH_MAX]) {
  if (is_disabled_by(secure_getenv("AON_DISABLE"))) return;
  const int folder = open_node_folder(path);
  if (folder < 0 || !append_byte(folder)) leave_link(folder, path);
  if (folder >= 0) close(folder);
}

bool open_fallback_ring(Process& p) {
  const int folder = open_node_folder(p.path);
  if (folder < 0) return false;
  ProcessIdentity identity = process_identity();
  identity.no_agent = p.no_agent;
  RingGeometry geometry;
  void* const mapping = map_file(folder, identity, &geometry);
  close(folder);
  if (mapping == MAP_FAILED) return false;
  if (madvise(mapping, geometry.total_bytes, MADV_DONTFORK) != 0) return false;
  use_ring(p, mapping, geometry);
  fill_header(p, identity);
  p.socket = -1;
  p.has_agent = false;
  return true;
}

}  // namespace aon::runtime
