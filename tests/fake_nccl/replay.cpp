// Calls of a real NCCL once more: a text that call_log.cpp has written, as call_layouts.h has it.
// Each thread of it is a thread here, calls begin in its order and not before their time.
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "tests/fake_nccl/call_layouts.h"
#include "tests/fake_nccl/fake_nccl.h"

namespace aon::test::nccl {
namespace {

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "replay: %s\n", what.c_str());
  std::exit(2);
}

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

class Replay {
 public:
  Replay(Plugin* plugin, int version) : plugin_(plugin), version_(version) {}

  void play(const std::string& line) {
    std::istringstream words(line);
    uint64_t time_ns = 0;
    int thread = 0;
    std::string call;
    if (!(words >> time_ns >> thread >> call)) die("what is \"" + line + "\"?");
    wait_until(time_ns);
    std::unique_ptr<Worker>& worker = workers_[thread];
    if (worker == nullptr) worker = std::make_unique<Worker>();
    worker->give([&] { make(call, &words); });
    worker->wait();
  }

 private:
  void wait_until(uint64_t time_ns) const {
    const uint64_t passed_ns = now_ns() - begin_ns_;
    if (passed_ns >= time_ns) return;
    const uint64_t rest_ns = time_ns - passed_ns;
    const timespec rest = {static_cast<time_t>(rest_ns / 1'000'000'000u),
                           static_cast<long>(rest_ns % 1'000'000'000u)};
    nanosleep(&rest, nullptr);
  }

  void make(const std::string& call, std::istringstream* words) {
    if (call == "init") return init(words);
    if (call == "start") return start(words);
    std::string number;
    *words >> number;
    if (call == "finalize") {
      plugin_->finalize(pointers_[number]);
    } else if (pointers_.count(number) == 0) {
      return;  // of an event that the plugin did not ask for
    } else if (call == "stop") {
      plugin_->stop(pointers_[number]);
    } else if (call == "state") {
      int state = 0;
      std::string hex;
      *words >> state >> hex;
      unsigned char bytes[kStateBytes] = {};
      if (hex != "-") read_bytes(hex, bytes, sizeof bytes);
      plugin_->state(pointers_[number], state, hex != "-" ? bytes : nullptr);
    } else {
      die("no such call: " + call);
    }
  }

  void init(std::istringstream* words) {
    std::string number, name;
    uint64_t id = 0;
    int mask = 0, nodes = 0, rank_count = 0, rank = 0;
    *words >> number >> std::hex >> id >> std::dec >> mask >> nodes >> rank_count >> rank;
    std::getline(*words >> std::ws, name);
    const char* told = name == "-" ? nullptr : keep(name);
    pointers_[number] = plugin_->init(id, told, rank_count, rank);
  }

  void start(std::istringstream* words) {
    std::string number, context, parent, hex, text;
    *words >> number >> context >> parent >> hex;
    alignas(8) unsigned char bytes[136] = {};
    read_bytes(hex, bytes, sizeof bytes);
    if (!plugin_->wants(type_of(version_, bytes))) return;
    void* of = pointer(parent);
    std::memcpy(bytes + kParentOffset, &of, sizeof of);
    // Work of the proxy for this process is told with its number.
    if (type_of(version_, bytes) == kProxyOp && pointer(context) != nullptr) {
      const auto process = static_cast<int32_t>(getpid());
      std::memcpy(bytes + kProcessOffset, &process, sizeof process);
    }
    while (*words >> text) {
      const size_t equals = text.find('=');
      const char* kept = keep(text.substr(equals + 1));
      std::memcpy(bytes + std::stoul(text), &kept, sizeof kept);
    }
    void* handle = nullptr;
    plugin_->table().start(pointer(context), &handle, bytes);
    pointers_[number] = handle;
  }

  /// Those that were not the plugin's are not its own here, either.
  void* pointer(const std::string& number) {
    if (number == "0") return nullptr;
    const auto found = pointers_.find(number);
    return found == pointers_.end() ? nullptr : found->second;
  }

  static void read_bytes(const std::string& hex, unsigned char* bytes, size_t room) {
    if (hex.size() / 2 > room) die("a descriptor is too long");
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
      bytes[i / 2] = static_cast<unsigned char>(std::stoul(hex.substr(i, 2), nullptr, 16));
  }

  static const char* keep(const std::string& text) { return (new std::string(text))->c_str(); }

  Plugin* plugin_;
  int version_;
  uint64_t begin_ns_ = now_ns();
  std::map<std::string, void*> pointers_;  ///< by number
  std::map<int, std::unique_ptr<Worker>> workers_;
};

}  // namespace

void replay(const char* path) {
  std::ifstream file(path);
  std::string word, line;
  int version = 0;
  if (!(file >> word >> version) || word != "nccl-calls" || version < 1 || version > 7)
    die(std::string(path) + " has no calls of NCCL");
  Plugin plugin(version);
  if (plugin.version() != version) die("the plugin has no such version");
  Replay calls(&plugin, version);
  std::getline(file, line);
  while (std::getline(file, line)) calls.play(line);
}

}  // namespace aon::test::nccl
