/// The membw provider: bytes that the memory controllers of each socket have read and written.
///
/// Where the numbers come from: for CPUs that membw.cpp knows, the encodings of the kernel's own
/// event lists (tools/perf/pmu-events/arch/x86); for all others the event files of the PMU
/// (uncore_imc_N: cas_count_read and cas_count_write with .scale and .unit). A CAS command and a
/// request with data move one cache line of 64 bytes.
///
/// Owner: the provider.   Thread: the provider's.   Cost: one descriptor per controller and
/// direction, 2 us each and reading; a reading twice a second.
#pragma once

#include <string>
#include <vector>

#include "node/pmu.h"
#include "node/session.h"

namespace aon::node {

constexpr uint32_t kMembwPeriodMs = 500;

class MembwSession : public Session {
 public:
  using Session::Session;

 protected:
  StateText find() override;
  void read() override;

 private:
  struct Channel {
    SocketEvent event;
    std::string name;  ///< "socket-0-read"
    double bytes_per_count;
  };
  /// What was tried and did not work.
  struct Problems {
    int error_number = 0;
    size_t refused_count = 0;
  };

  void open_files(const Pmu& pmu, Problems* problems);
  void open(const Pmu& pmu, const std::string& terms, const std::string& direction,
            double bytes_per_count, Problems* problems);
  Problems open_all();
  StateText why_off(const Problems& problems) const;

  std::vector<Channel> channels_;
};

}  // namespace aon::node
