// A process that attaches like any other and then writes nonsense into its ring, at random places
// and at the places that matter:  hostile SEED SECONDS. Also sends broken messages.
#include <aon/bell.h>
#include <aon/ring.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/agent/protocol.h"

namespace {

using namespace aon::agent;

int connect_agent() {
  const char* path = std::getenv("AON_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return -1;
  return fd;
}

/// Descriptor of the ring, or -1. `bell` is that of the bell's page.
int attach(int fd, Welcome* welcome, int* bell) {
  Hello hello{};
  hello.header = {kProtocolMagic, kProtocolVersion, MessageType::kHello, sizeof(hello)};
  hello.pid = ::getpid();
  hello.rank = -1;
  std::memset(hello.program, 'x', sizeof(hello.program));  // no NUL
  if (::send(fd, &hello, sizeof(hello), 0) < 0) return -1;
  iovec part{welcome, sizeof(*welcome)};
  int received[2] = {-1, -1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(received))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (::recvmsg(fd, &message, 0) != static_cast<ssize_t>(sizeof(*welcome))) return -1;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr) return -1;
  std::memcpy(received, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
  *bell = received[1];
  return received[0];
}

/// Messages that are no protocol at all, of no type, or of a size that is not their type's.
void send_nonsense(std::mt19937_64& random) {
  for (int i = 0; i < 50; ++i) {
    const int fd = connect_agent();
    if (fd < 0) continue;
    std::vector<uint8_t> bytes(random() % 2000);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    if (bytes.size() >= sizeof(MessageHeader) && i % 2 == 0) {
      const MessageHeader header{kProtocolMagic, kProtocolVersion,
                                 static_cast<MessageType>(random() % 9),
                                 static_cast<uint32_t>(bytes.size())};
      std::memcpy(bytes.data(), &header, sizeof(header));
    }
    ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::close(fd);
  }
}

class Scribbler {
 public:
  Scribbler(uint8_t* base, const aon::RingGeometry& geometry, uint64_t seed)
      : base_(base), geometry_(geometry), random_(seed) {
    auto& header = *reinterpret_cast<aon::RingHeader*>(base_);
    header.slots_used.store(8);
  }
  void step() {
    switch (random_() % 8) {
      case 0:
        store(random_() % geometry_.total_bytes & ~7ull, random_());
        break;
      case 1:  // counts and chains of the first chunks
        store(chunk(), random_() % 5000 | (random_() % 200) << 32);
        break;
      case 2:
        store(chunk() + 8, random_() % 100);
        break;
      case 3:  // heads of slots
        store(geometry_.slots_offset + random_() % 8 * sizeof(aon::ThreadSlot) + random_() % 12 * 8,
              random_() % 100);
        break;
      case 4:  // records
        store(chunk() + 64 + random_() % 126 * 32 + 8, random_());
        break;
      case 5:
        store(geometry_.free_map_offset + random_() % 64 * 8, random_());
        break;
      case 6:  // a plausible start of a chunk
        make_chunk(static_cast<uint32_t>(random_() % 64));
        break;
      default:
        store(random_() % aon::kPageBytes & ~7ull, random_());
    }
  }

 private:
  uint64_t chunk() { return geometry_.chunks_offset + random_() % 64 * aon::kChunkBytes; }
  void store(uint64_t offset, uint64_t value) {
    if (offset + 8 > geometry_.total_bytes) return;
    reinterpret_cast<std::atomic<uint64_t>*>(base_ + offset)->store(value);
  }
  void make_chunk(uint32_t index) {
    const uint32_t slot = static_cast<uint32_t>(random_() % 8);
    uint8_t* at = base_ + geometry_.chunks_offset + uint64_t{index} * aon::kChunkBytes;
    std::memset(at, 0, aon::kChunkBytes);
    for (uint32_t i = 64; i < aon::kChunkBytes; i += 4) {
      const auto value = static_cast<uint32_t>(random_());
      std::memcpy(at + i, &value, 4);
    }
    auto& header = *reinterpret_cast<aon::ChunkHeader*>(at);
    header.next.store(static_cast<uint32_t>(random_() % 64));
    header.committed.store(random_() % 127 * 32 | (random_() % 127) << 32);
    auto& first = reinterpret_cast<aon::ThreadSlot*>(base_ + geometry_.slots_offset)[slot];
    first.stream[0].first_chunk.store(index);
  }

  uint8_t* base_;
  aon::RingGeometry geometry_;
  std::mt19937_64 random_;
};

/// Rings without end, and writes what it likes into the page of all.
void hammer(aon::Bell* bell, uint64_t value) {
  bell->armed.store(static_cast<uint32_t>(value));
  bell->rings.store(static_cast<uint32_t>(value >> 32));
  ::syscall(SYS_futex, &bell->rings, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::mt19937_64 random(std::strtoull(argv[1], nullptr, 10));
  send_nonsense(random);
  const int fd = connect_agent();
  Welcome welcome{};
  int bell_fd = -1;
  const int ring = fd >= 0 ? attach(fd, &welcome, &bell_fd) : -1;
  if (ring < 0 || bell_fd < 0) return 3;
  if (::ftruncate(bell_fd, 0) == 0) return 4;  // sealed
  if (::ftruncate(ring, 4096) == 0) return 4;  // sealed
  void* base = ::mmap(nullptr, welcome.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
  if (base == MAP_FAILED) return 5;
  void* page = ::mmap(nullptr, aon::kBellBytes, PROT_READ | PROT_WRITE, MAP_SHARED, bell_fd, 0);
  if (page == MAP_FAILED) return 5;
  Scribbler scribbler(static_cast<uint8_t*>(base),
                      aon::ring_geometry(welcome.slot_count, welcome.chunk_count), random());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[2]));
  uint64_t steps = 0;
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 1000; ++i) {
      scribbler.step();
      hammer(static_cast<aon::Bell*>(page), random());
    }
    steps += 1000;
    ::usleep(500);
  }
  std::printf("%llu\n", static_cast<unsigned long long>(steps));
  return 0;
}
