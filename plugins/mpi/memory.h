/// Memory of the plugin: anonymous mappings, never given back. The program's malloc is not used: it
/// may be the program's own, and may call us.
/// Thread: any.   Cost: one mmap.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace aon::mpi {

/// Zeroed memory, or null.
inline void* map_bytes(size_t byte_count) {
  void* memory =
      mmap(nullptr, byte_count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace aon::mpi
