#include "core/agent/staging.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "core/base/file.h"

namespace aon::agent {

Result<UniqueFd> Staging::create(uint64_t capacity_bytes) {
  UniqueFd fd(::memfd_create("aon-agent-staging", MFD_CLOEXEC));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(capacity_bytes)) != 0)
    return errno_error("cannot create", "the agent's staging memory", errno);
  return fd;
}

Result<Staging> Staging::map(int fd, uint64_t capacity_bytes) {
  void* place = ::mmap(nullptr, 2 * capacity_bytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return errno_error("cannot map", "the agent's staging memory", errno);
  auto* data = static_cast<uint8_t*>(place);
  for (uint8_t* half : {data, data + capacity_bytes}) {
    if (::mmap(half, capacity_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
        MAP_FAILED)
      return errno_error("cannot map", "the agent's staging memory", errno);
  }
  Staging staging;
  staging.data_ = data;
  staging.mask_ = capacity_bytes - 1;
  return staging;
}

uint32_t Staging::seal(StagingEntry* entry, uint32_t record_bytes) noexcept {
  const uint32_t bytes = entry_bytes(record_bytes);
  entry->entry_bytes = bytes;
  entry->record_bytes = record_bytes;
  const uint64_t trailer = bytes;
  std::memcpy(reinterpret_cast<uint8_t*>(entry) + bytes - sizeof(trailer), &trailer,
              sizeof(trailer));
  return bytes;
}

const StagingEntry* Staging::last_entry(uint64_t head) const noexcept {
  if (head == 0) return nullptr;
  uint64_t trailer = 0;
  std::memcpy(&trailer, data_ + ((head - sizeof(trailer)) & mask_), sizeof(trailer));
  return entry(head - trailer);
}

}  // namespace aon::agent
