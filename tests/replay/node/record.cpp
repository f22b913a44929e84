// node_record PID: prints what the providers of plugins/node read on this machine, in the form of
// machine.h. Add it to this folder as MACHINE.machine with some steps at its end, run replay.node
// with AON_UPDATE_FIXTURES=1, and check MACHINE.expected by hand.
#include <stdlib.h>

#include <cstring>
#include <iostream>
#include <set>

#include "plugins/node/energy.h"
#include "plugins/node/membw.h"
#include "plugins/node/network.h"
#include "plugins/node/node.h"
#include "plugins/node/process.h"
#include "tests/unit/provider/fake_core.h"

namespace aon::node {
namespace {

/// Of this machine; prints each file once.
class Recorder : public System {
 public:
  Recorder() : System("") {}

  File read(const std::string& path, size_t max_bytes) const override {
    File file = System::read(path, max_bytes);
    if (file.error_number == ENOENT || !is_new(path)) return file;
    if (!file) {
      std::cout << path << " !" << strerrorname_np(file.error_number) << '\n';
    } else {
      const bool ends = file.text.ends_with("\n");
      std::cout << path << " <<\n" << file.text << (ends ? "" : "\n") << ".\n";
    }
    return file;
  }
  bool exists(const std::string& path) const override {
    const bool is_there = System::exists(path);
    if (is_there && is_new("exists " + path)) std::cout << path << " exists\n";
    return is_there;
  }
  std::vector<std::string> list(const std::string& folder) const override {
    auto names = System::list(folder);
    for (const std::string& name : names) {
      const std::string path = folder.ends_with("/") ? folder + name : folder + "/" + name;
      if (is_new("exists " + path)) std::cout << path << " exists\n";
    }
    return names;
  }
  int open_event(const perf_event_attr& attr, int cpu) override {
    const int fd = System::open_event(attr, cpu);
    std::cout << "event " << attr.type << "/0x" << std::hex << attr.config << std::dec << '/'
              << cpu;
    if (fd < 0) std::cout << " !" << strerrorname_np(-fd) << '\n';
    if (fd >= 0) std::cout << " = 0 0 0\n";
    return fd;
  }

 private:
  bool is_new(const std::string& key) const { return seen_.insert(key).second; }

  mutable std::set<std::string> seen_;
};

template <class T>
void record(Recorder& recorder, pid_t pid) {
  aon_core core;
  T session(recorder, Output(&core, &test::fake_core_api()));
  if (session.start(0).state == AON_STATE_OFF) return;
  session.process_started(1, pid);
  session.tick(1);
}

}  // namespace
}  // namespace aon::node

int main(int argc, char** argv) {
  const pid_t pid = argc > 1 ? atoi(argv[1]) : 1;
  aon::node::Recorder recorder;
  aon::node::record<aon::node::EnergySession>(recorder, pid);
  aon::node::record<aon::node::MembwSession>(recorder, pid);
  aon::node::record<aon::node::NetworkSession>(recorder, pid);
  aon::node::record<aon::node::NodeSession>(recorder, pid);
  aon::node::record<aon::node::ProcessSession>(recorder, pid);
  return 0;
}
