#include "cupti/fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

namespace aon::cupti {
namespace {

constexpr size_t kUnit = 8;
constexpr size_t kMaxName = 3072;
constexpr size_t kMaxNodeName = 64;

}  // namespace

void Fixture::open_for_process(const char* folder, uint32_t version) {
  if (folder[0] == '\0') return;
  // The folder may be that of many nodes.
  char node[kMaxNodeName + 1] = {};
  if (gethostname(node, kMaxNodeName) != 0) node[0] = '\0';
  char path[1024];
  const int bytes = snprintf(path, sizeof path, "%s/cupti-%s-%d.bin", folder, node, getpid());
  if (bytes < 0 || static_cast<size_t>(bytes) >= sizeof path) return;
  file_ = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file_ < 0) return;
  struct {
    char magic[sizeof kMagic];
    uint32_t version;
    uint32_t reserved;
  } head = {{}, version, 0};
  memcpy(head.magic, kMagic, sizeof kMagic);
  if (write(file_, &head, sizeof head) != static_cast<ssize_t>(sizeof head)) close_file();
}

void Fixture::close_file() {
  close(file_);
  file_ = -1;
}

void Fixture::write_part(Part part, const void* head, size_t head_bytes, const void* body,
                         size_t body_bytes) {
  static constexpr uint8_t kZeros[kUnit] = {};
  const size_t payload_bytes = head_bytes + body_bytes;
  const uint32_t about[2] = {static_cast<uint32_t>(part), static_cast<uint32_t>(payload_bytes)};
  const size_t padding_bytes = (kUnit - payload_bytes % kUnit) % kUnit;
  const iovec pieces[] = {{const_cast<uint32_t*>(about), sizeof about},
                          {const_cast<void*>(head), head_bytes},
                          {const_cast<void*>(body), body_bytes},
                          {const_cast<uint8_t*>(kZeros), padding_bytes}};
  const size_t all_bytes = sizeof about + payload_bytes + padding_bytes;
  written_bytes_ += all_bytes;
  // Half a part would be damage: the file ends before it then, for readers stop there.
  if (written_bytes_ > kMaxBytes || writev(file_, pieces, 4) != static_cast<ssize_t>(all_bytes))
    close_file();
}

void Fixture::add_name(const char* name) {
  if (file_ < 0 || name == nullptr) return;
  const uint64_t address = reinterpret_cast<uintptr_t>(name);
  const char*& place = names_[(address * 0x9e3779b97f4a7c15ull) >> 52];
  static_assert(kNames == 1u << (64 - 52));
  if (place == name) return;
  place = name;
  char text[kMaxName + 1] = {};
  const size_t bytes = strnlen(name, kMaxName);
  memcpy(text, name, bytes);
  write_part(Part::kName, &address, sizeof address, text, bytes + 1);
}

void Fixture::add_buffer(const uint8_t* bytes, size_t byte_count) {
  if (file_ >= 0 && byte_count != 0) write_part(Part::kBuffer, nullptr, 0, bytes, byte_count);
}

}  // namespace aon::cupti
