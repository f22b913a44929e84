// Ring of a process that found no agent: a file in the job directory that `aon finalize` reads.
// Nobody drains it: when it is full, records are refused and counted.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/runtime/process.h"

namespace aon::runtime {
namespace {

constexpr uint64_t kDefaultBytes = 8u << 20;
constexpr uint64_t kLeastBytes = 1u << 20;
constexpr uint64_t kMostBytes = 1u << 30;
constexpr uint32_t kFallbackSlots = kMaxThreadSlots;
constexpr int kMostPrograms = 64;  ///< of one process, one after the other

/// AON_MEMORY: a number with K, M or G behind it.
uint64_t ring_bytes() {
  const char* text = secure_getenv("AON_MEMORY");
  if (text == nullptr) return kDefaultBytes;
  char* end = nullptr;
  uint64_t bytes = strtoull(text, &end, 10);
  if (*end == 'K' || *end == 'k') bytes <<= 10;
  if (*end == 'M' || *end == 'm') bytes <<= 20;
  if (*end == 'G' || *end == 'g') bytes <<= 30;
  if (bytes == 0) return kDefaultBytes;
  if (bytes < kLeastBytes) return kLeastBytes;
  return bytes < kMostBytes ? bytes : kMostBytes;
}

/// Opens DIR/spool/HOST/fallback-PID-START.ring for writing, making its folders; of a process that
/// has called exec(), fallback-PID-START-N.ring of its N-th program. -1: not possible.
int create_file(const char* folder, const ProcessIdentity& identity) {
  char host[HOST_NAME_MAX + 1] = {};
  if (gethostname(host, sizeof host - 1) != 0 || strchr(host, '/') != nullptr) return -1;
  char path[PATH_MAX];
  const char* format[] = {"%s", "%s/spool", "%s/spool/%s"};
  for (const char* part : format) {
    if (snprintf(path, sizeof path, part, folder, host) >= PATH_MAX) return -1;
    mkdir(path, 0700);  // mostly there already; open() tells
  }
  const auto start = static_cast<unsigned long long>(identity.start_time_ticks);
  for (int program = 1; program <= kMostPrograms; ++program) {
    char number[16] = "";
    if (program > 1) snprintf(number, sizeof number, "-%d", program);
    const int length = snprintf(path, sizeof path, "%s/spool/%s/fallback-%d-%llu%s.ring", folder,
                                host, identity.pid, start, number);
    if (length >= PATH_MAX) return -1;
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
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

/// Chunks of a ring below the process's file size limit: beyond it the kernel would send SIGXFSZ to
/// the program. 0: there is no room for a ring.
uint32_t allowed_chunk_count() {
  rlimit limit = {};
  getrlimit(RLIMIT_FSIZE, &limit);
  const uint64_t fixed_bytes = ring_geometry(kFallbackSlots, 0).total_bytes + kPageBytes;
  if (limit.rlim_cur <= fixed_bytes) return 0;
  const uint64_t room = (uint64_t{limit.rlim_cur} - fixed_bytes) / kChunkBytes;
  const uint64_t wanted = ring_bytes() / kChunkBytes;
  return static_cast<uint32_t>(room < wanted ? room : wanted);
}

}  // namespace

bool open_fallback_ring(Process& p) {
  const char* folder = secure_getenv("AON_OUTPUT");
  if (folder == nullptr || folder[0] != '/') return false;
  const uint32_t chunk_count = allowed_chunk_count();
  if (chunk_count == 0) return false;
  const ProcessIdentity identity = process_identity();
  const RingGeometry geometry = ring_geometry(kFallbackSlots, chunk_count);
  const int fd = create_file(folder, identity);
  if (fd < 0) return false;
  // Allocated before it is mapped: a store into a hole of a full file system raises SIGBUS.
  void* mapping = MAP_FAILED;
  if (posix_fallocate(fd, 0, static_cast<off_t>(geometry.total_bytes)) == 0) {
    mapping = mmap(nullptr, geometry.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  if (mapping == MAP_FAILED) {
    if (ftruncate(fd, 0) != 0) {
      // Nothing to do: an empty or short file is skipped by its reader.
    }
    close(fd);
    return false;
  }
  close(fd);
  if (madvise(mapping, geometry.total_bytes, MADV_DONTFORK) != 0) return false;
  use_ring(p, mapping, geometry);
  fill_header(p, identity);
  p.socket = -1;
  p.has_agent = false;
  return true;
}

}  // namespace aon::runtime
