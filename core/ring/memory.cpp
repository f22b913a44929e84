#include "core/ring/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace aon::ring {
namespace {

Error io_error(const std::string& what) {
  return Error{Code::kIo, what + ": " + std::strerror(errno)};
}

Status preallocate(int fd, uint64_t offset, uint64_t bytes) {
  if (fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) {
    return io_error("cannot allocate memory for a ring");
  }
  return {};
}

void fill_header(RingHeader& header, const RingGeometry& geometry) {
  header.abi = kRingAbi;
  header.slot_count = geometry.slot_count;
  header.chunk_count = geometry.chunk_count;
  header.modes_offset = geometry.modes_offset;
  header.slots_offset = geometry.slots_offset;
  header.free_map_offset = geometry.free_map_offset;
  header.chunks_offset = geometry.chunks_offset;
  header.total_bytes = geometry.total_bytes;
}

ThreadSlot* slots_of(void* base, const RingGeometry& geometry) {
  return reinterpret_cast<ThreadSlot*>(static_cast<char*>(base) + geometry.slots_offset);
}

std::atomic<uint64_t>* free_map_of(void* base, const RingGeometry& geometry) {
  return reinterpret_cast<std::atomic<uint64_t>*>(static_cast<char*>(base) +
                                                  geometry.free_map_offset);
}

/// The geometry that a file claims, if it is a ring and the file holds all of it.
Result<RingGeometry> claimed_geometry(const RingHeader& header, uint64_t file_bytes,
                                      const std::string& path) {
  if (header.magic != kRingMagic || header.abi != kRingAbi) {
    return Error{Code::kDamaged, path + " is no ring of this version"};
  }
  if (header.slot_count <= kMainThreadSlot || header.slot_count > kMaxThreadSlots ||
      header.chunk_count > file_bytes / kChunkBytes) {
    return Error{Code::kDamaged, path + " claims an impossible size"};
  }
  const RingGeometry geometry = ring_geometry(header.slot_count, header.chunk_count);
  if (geometry.total_bytes > file_bytes) return Error{Code::kDamaged, path + " is cut off"};
  return geometry;
}

Status read_exactly(int fd, void* out, uint64_t bytes, const std::string& path) {
  char* at = static_cast<char*>(out);
  uint64_t offset = 0;
  while (offset < bytes) {
    const ssize_t got = pread(fd, at + offset, bytes - offset, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error("cannot read " + path);
    if (got == 0) return Error{Code::kDamaged, path + " is cut off"};
    offset += static_cast<uint64_t>(got);
  }
  return {};
}

}  // namespace

Result<RingMemory> RingMemory::create(uint32_t process, uint32_t slot_count, uint32_t chunk_count,
                                      uint32_t offered, bool clock_is_tsc) {
  const RingGeometry geometry = ring_geometry(slot_count, chunk_count);
  UniqueFd fd(memfd_create("aon-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ftruncate(fd.get(), static_cast<off_t>(geometry.total_bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return io_error("cannot make a ring");
  }
  Status allocated = preallocate(fd.get(), 0, geometry.chunks_offset);
  if (!allocated) return allocated.error();
  Result<RingMemory> memory = attach(std::move(fd), slot_count, chunk_count, 0);
  if (!memory) return memory;
  RingHeader& header = *static_cast<RingHeader*>(memory->base());
  fill_header(header, geometry);
  header.process = process;
  header.clock_is_tsc = clock_is_tsc ? 1 : 0;
  for (uint32_t i = 0; i < slot_count; ++i) {
    ThreadSlot& slot = slots_of(memory->base(), geometry)[i];
    for (StreamState& stream : slot.stream) stream.first_chunk.store(kNoChunk);
    slot.counter_chunk.store(kNoChunk);
    for (std::atomic<uint32_t>& chunk : slot.stack_chunk) chunk.store(kNoChunk);
  }
  Status offer = memory->offer(offered);
  if (!offer) return offer.error();
  header.magic = kRingMagic;
  return memory;
}

Result<RingMemory> RingMemory::attach(UniqueFd fd, uint32_t slot_count, uint32_t chunk_count,
                                      uint32_t offered) {
  const RingGeometry geometry = ring_geometry(slot_count, chunk_count);
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return io_error("cannot look at a ring");
  if (static_cast<uint64_t>(status.st_size) < geometry.total_bytes) {
    return Error{Code::kDamaged, "a ring is smaller than its geometry"};
  }
  void* base = mmap(nullptr, geometry.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) return io_error("cannot map a ring");
  return RingMemory(std::move(fd), base, geometry, std::min(offered, chunk_count));
}

RingMemory::RingMemory(RingMemory&& other) noexcept
    : fd_(std::move(other.fd_)),
      base_(std::exchange(other.base_, nullptr)),
      geometry_(other.geometry_),
      offered_(other.offered_) {}

RingMemory& RingMemory::operator=(RingMemory&& other) noexcept {
  if (this == &other) return *this;
  if (base_ != nullptr) munmap(base_, geometry_.total_bytes);
  fd_ = std::move(other.fd_);
  base_ = std::exchange(other.base_, nullptr);
  geometry_ = other.geometry_;
  offered_ = other.offered_;
  return *this;
}

RingMemory::~RingMemory() {
  if (base_ != nullptr) munmap(base_, geometry_.total_bytes);
}

void RingMemory::show_call(uint32_t tid, uint64_t start_ticks, uint32_t region) {
  ThreadSlot* slots = slots_of(base_, geometry_);
  // Every process takes this slot first.
  if (slots[kDefinitionSlot].state.load(std::memory_order_relaxed) !=
      static_cast<uint32_t>(SlotState::kIdle))
    return;
  ThreadSlot& main = slots[kMainThreadSlot];
  main.tid.store(tid, std::memory_order_relaxed);
  main.open[0].region = region;
  main.open[0].communicator = 0;
  main.open[0].peer_tag = 0;
  main.open[0].bytes = 0;
  main.open[0].start_ticks.store(start_ticks, std::memory_order_release);  // pairs with ring:open
  main.state.store(static_cast<uint32_t>(start_ticks != 0 ? SlotState::kActive : SlotState::kIdle),
                   std::memory_order_release);  // pairs with ring:slot
  auto* header = static_cast<RingHeader*>(base_);
  header->slots_used.store(kMainThreadSlot + 1,
                           std::memory_order_release);  // pairs with ring:slots
}

Status RingMemory::offer(uint32_t count) {
  const uint32_t end = offered_ + std::min(count, geometry_.chunk_count - offered_);
  if (end == offered_) return {};
  const uint64_t offset = geometry_.chunks_offset + uint64_t{offered_} * kChunkBytes;
  Status allocated = preallocate(fd_.get(), offset, uint64_t{end - offered_} * kChunkBytes);
  if (!allocated) return allocated;
  std::atomic<uint64_t>* map = free_map_of(base_, geometry_);
  for (; offered_ < end; ++offered_) {
    map[offered_ / 64].fetch_or(uint64_t{1} << (offered_ % 64),
                                std::memory_order_release);  // pairs with ring:free
  }
  return {};
}

uint32_t RingMemory::free_chunk_count() const {
  const std::atomic<uint64_t>* map = free_map_of(base_, geometry_);
  uint32_t count = 0;
  for (uint32_t i = 0; i < (offered_ + 63) / 64; ++i) {
    count += static_cast<uint32_t>(std::popcount(map[i].load(std::memory_order_relaxed)));
  }
  return std::min(count, offered_);
}

void RingMemory::wake_at_half() {
  const std::atomic<uint64_t>* map = free_map_of(base_, geometry_);
  const uint32_t half = free_chunk_count() / 2;
  uint32_t chunk = offered_;
  uint32_t count = 0;
  for (uint32_t i = 0; i < (offered_ + 63) / 64 && count <= half; ++i) {
    uint64_t free = map[i].load(std::memory_order_relaxed);
    for (; free != 0 && count <= half; ++count) {
      chunk = i * 64 + static_cast<uint32_t>(std::countr_zero(free));
      free &= free - 1;
    }
  }
  static_cast<RingHeader*>(base_)->wake_chunk.store(chunk, std::memory_order_relaxed);
}

uint64_t RingMemory::committed_bytes() const {
  return geometry_.chunks_offset + uint64_t{offered_} * kChunkBytes;
}

std::atomic<uint32_t>* RingMemory::modes() const {
  return reinterpret_cast<std::atomic<uint32_t>*>(static_cast<char*>(base_) +
                                                  geometry_.modes_offset);
}

Result<RingImage> read_ring_file(const std::string& path, uint64_t max_bytes) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return io_error("cannot open " + path);
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return io_error("cannot look at " + path);
  const uint64_t file_bytes = static_cast<uint64_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || file_bytes < sizeof(RingHeader) || file_bytes > max_bytes) {
    return Error{Code::kDamaged, path + " is no ring: wrong size or type"};
  }
  alignas(RingHeader) char bytes[sizeof(RingHeader)];
  Status read = read_exactly(fd.get(), bytes, sizeof bytes, path);
  if (!read) return read.error();
  const RingHeader& header = *reinterpret_cast<const RingHeader*>(bytes);
  Result<RingGeometry> geometry = claimed_geometry(header, file_bytes, path);
  if (!geometry) return geometry.error();
  RingImage image;
  image.geometry = *geometry;
  image.memory.resize(geometry->total_bytes / sizeof(Page));
  read = read_exactly(fd.get(), image.base(), geometry->total_bytes, path);
  if (!read) return read.error();
  image.identity = header.identity;
  image.identity.program[sizeof image.identity.program - 1] = '\0';
  image.clock_is_tsc = header.clock_is_tsc == 1;
  image.clock_first = header.clock_first;
  image.clock_last = header.clock_last;
  return image;
}

uint64_t read_launch_mark(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  alignas(RingHeader) char bytes[sizeof(RingHeader)];
  if (!fd || !read_exactly(fd.get(), bytes, sizeof bytes, path)) return 0;
  const RingHeader& header = *reinterpret_cast<const RingHeader*>(bytes);
  return header.magic == kRingMagic ? header.launch_mark : 0;
}

}  // namespace aon::ring
