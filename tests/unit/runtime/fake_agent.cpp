#include "tests/unit/runtime/fake_agent.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "core/base/packet.h"
#include "core/base/unique_fd.h"

namespace aon::test {

std::vector<Record> TakenStream::records() const {
  std::vector<Record> out;
  for (size_t offset = 0; offset < bytes.size();) {
    Record record = {};
    std::memcpy(&record.head, bytes.data() + offset, kSlotBytes);
    if (!is_valid(record.head) || offset + record.head.slot_count * kSlotBytes > bytes.size()) {
      ADD_FAILURE() << "torn record at byte " << offset;
      return out;
    }
    std::memcpy(&record, bytes.data() + offset, record.head.slot_count * kSlotBytes);
    offset += record.head.slot_count * kSlotBytes;
    out.push_back(record);
  }
  return out;
}

uint64_t TakenProcess::counted() const {
  uint64_t sum = 0;
  for (const auto& [key, stream] : streams)
    sum += key.first != kDefinitionSlot ? stream.counted : 0;
  return sum;
}

uint64_t TakenProcess::refused() const {
  uint64_t sum = refused_no_slot;
  for (const auto& [key, stream] : streams)
    sum += key.first != kDefinitionSlot ? stream.refused : 0;
  return sum;
}

/// A reader and what it took.
class FakeAgent::Taker : public ring::Sink {
 public:
  Taker(void* base, const RingGeometry& geometry, bool frees_chunks, bool keeps)
      : keeps_(keeps), reader_(base, geometry, frees_chunks) {}

  bool take(const ring::Piece& piece) override {
    TakenStream& stream = taken_.streams[{piece.slot, piece.context}];
    EXPECT_EQ(stream.counted, piece.first_sequence);
    if (keeps_) stream.bytes.insert(stream.bytes.end(), piece.bytes.begin(), piece.bytes.end());
    stream.counted += piece.counted;
    stream.position = piece.after;
    return true;
  }
  void moved(uint32_t slot, uint32_t context, const ring::StreamPosition& position) override {
    taken_.streams[{slot, context}].position = position;
  }

  void drain() {
    while (!reader_.drain(*this).is_complete) {
    }
  }

  TakenProcess finish(uint64_t end_ticks) {
    drain();
    taken_.refused_no_slot = reader_.refused_no_slot();
    taken_.slots_used = reader_.slots_used();
    for (uint32_t slot = 0; slot < reader_.slots_used(); ++slot) {
      for (uint32_t context = 0; context < kContexts; ++context) {
        const uint64_t refused = reader_.refused(slot, context);
        if (refused != 0) taken_.streams[{slot, context}].refused = refused;
      }
      std::vector<uint64_t> counts(kMaxCounters);
      if (reader_.counters(slot, std::span<uint64_t, kMaxCounters>(counts))) {
        taken_.counters[slot] = counts;
      }
      std::vector<Record> open = reader_.open_calls(slot, end_ticks);
      if (!open.empty()) taken_.open_calls[slot] = open;
    }
    return taken_;
  }

 private:
  const bool keeps_;
  ring::RingReader reader_;
  TakenProcess taken_;
};

class FakeAgent::Client {
 public:
  Client(UniqueFd socket, const agent::Hello& hello, ring::RingMemory memory, bool keeps)
      : socket_(std::move(socket)),
        hello_(hello),
        memory_(std::move(memory)),
        taker_(memory_.base(), memory_.geometry(), true, keeps) {}

  void drain() { taker_.drain(); }
  TakenProcess finish(uint64_t end_ticks) { return complete(taker_.finish(end_ticks)); }
  TakenProcess look() {
    return complete(Taker(memory_.base(), memory_.geometry(), false, true).finish(UINT64_MAX));
  }
  int32_t pid() const { return hello_.pid; }
  ring::RingMemory& memory() { return memory_; }

 private:
  TakenProcess complete(TakenProcess taken) const {
    taken.hello = hello_;
    taken.free_chunk_count = memory_.free_chunk_count();
    return taken;
  }

  UniqueFd socket_;
  agent::Hello hello_;
  ring::RingMemory memory_;
  Taker taker_;
};

FakeAgent::FakeAgent(const FakeAgentOptions& options) : options_(options) {
  char folder[] = "/tmp/aon-test-XXXXXX";
  folder_ = mkdtemp(folder);
  path_ = folder_ + "/agent";
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
  EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  // The peer's credentials are those of whoever said listen().
  const uid_t own_user = geteuid();
  EXPECT_EQ(seteuid(options_.user == UINT32_MAX ? own_user : options_.user), 0);
  EXPECT_EQ(listen(listener_, 64), 0);
  EXPECT_EQ(seteuid(own_user), 0);
  thread_ = std::thread([this] { run(); });
}

FakeAgent::~FakeAgent() {
  stop_ = true;
  thread_.join();
  close(listener_);
  for (int fd : silent_) close(fd);
  unlink(path_.c_str());
  rmdir(folder_.c_str());
}

void FakeAgent::run() {
  while (!stop_) {
    pollfd entry = {listener_, POLLIN, 0};
    const timespec period = {0, static_cast<long>(options_.drain_period_us) * 1000};
    if (ppoll(&entry, 1, &period, nullptr) == 1) accept_one();
    std::lock_guard lock(m_);
    if (!options_.drains) continue;
    for (auto& client : clients_) {
      client->drain();
      if (options_.grows) {
        EXPECT_TRUE(client->memory().offer(1024));
      }
    }
  }
}

namespace {

void offer_too_much(const ring::RingMemory& memory) {
  auto* map = reinterpret_cast<std::atomic<uint64_t>*>(static_cast<char*>(memory.base()) +
                                                       memory.geometry().free_map_offset);
  map[memory.geometry().chunk_count / 64].fetch_or(uint64_t{1} << 63);
}

UniqueFd unsealed_copy(const ring::RingMemory& memory) {
  UniqueFd copy(memfd_create("copy", MFD_CLOEXEC));
  const uint64_t bytes = memory.geometry().total_bytes;
  EXPECT_EQ(write(copy.get(), memory.base(), bytes), static_cast<ssize_t>(bytes));
  return copy;
}

}  // namespace

void FakeAgent::accept_one() {
  UniqueFd fd(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
  if (!options_.answers) {
    std::lock_guard lock(m_);
    silent_.push_back(fd.release());
    return;
  }
  agent::Hello hello = {};
  if (recv(fd.get(), &hello, sizeof hello, 0) != static_cast<ssize_t>(sizeof hello)) return;
  std::lock_guard lock(m_);
  const uint32_t process = static_cast<uint32_t>(clients_.size());
  auto memory = ring::RingMemory::create(process, options_.slot_count, options_.chunk_count,
                                         options_.offered, hello.clock_is_tsc != 0);
  if (!memory) {
    ADD_FAILURE() << memory.error().message;
    return;
  }
  if (hello.begun.name[0] != '\0') {
    memory->show_call(static_cast<uint32_t>(hello.pid),
                      hello.clock_is_tsc != 0 ? hello.begun.tsc : hello.begun.raw_ns,
                      hello.begun.region);
  }
  agent::Welcome welcome = {};
  welcome.header = {agent::kProtocolMagic, agent::kProtocolVersion, agent::MessageType::kWelcome,
                    sizeof welcome};
  welcome.process = process;
  welcome.slot_count = options_.slot_count;
  welcome.chunk_count = options_.chunk_count;
  welcome.total_bytes = memory->geometry().total_bytes;
  if (options_.offers_too_much) offer_too_much(*memory);
  const UniqueFd copy = options_.seals ? UniqueFd() : unsealed_copy(*memory);
  const int descriptors[] = {copy ? copy.get() : memory->fd(), options_.bell_fd};
  const size_t count = options_.bell_fd >= 0 ? 2 : 1;
  if (options_.bell_fd >= 0) memory->wake_at_half();
  if (options_.welcomes && !send_struct(fd.get(), welcome, {descriptors, count})) return;
  clients_.push_back(
      std::make_unique<Client>(std::move(fd), hello, std::move(*memory), options_.keeps));
}

FakeAgent::Client* FakeAgent::find(int32_t pid) {
  for (auto client = clients_.rbegin(); client != clients_.rend(); ++client) {
    if ((*client)->pid() == pid) return client->get();
  }
  return nullptr;
}

TakenProcess FakeAgent::finish(int32_t pid, uint64_t end_ticks) {
  std::lock_guard lock(m_);
  Client* client = find(pid);
  if (client == nullptr) return {};
  TakenProcess taken = client->finish(end_ticks);
  std::erase_if(clients_, [&](const auto& one) { return one.get() == client; });
  return taken;
}

TakenProcess FakeAgent::look(int32_t pid) {
  std::lock_guard lock(m_);
  Client* client = find(pid);
  return client != nullptr ? client->look() : TakenProcess{};
}

std::vector<int32_t> FakeAgent::pids() {
  std::lock_guard lock(m_);
  std::vector<int32_t> result;
  for (const auto& client : clients_) result.push_back(client->pid());
  return result;
}

size_t FakeAgent::process_count() {
  std::lock_guard lock(m_);
  return clients_.size();
}

std::atomic<uint32_t>* FakeAgent::modes(int32_t pid) {
  std::lock_guard lock(m_);
  Client* client = find(pid);
  return client != nullptr ? client->memory().modes() : nullptr;
}

void FakeAgent::offer(int32_t pid, uint32_t count) {
  std::lock_guard lock(m_);
  Client* client = find(pid);
  ASSERT_NE(client, nullptr);
  ASSERT_TRUE(client->memory().offer(count));
}

}  // namespace aon::test
