/// Events of one thread -> its MPI calls, each with a token: a hash of what the program asked for.
/// Calls of one place of a loop have the same token in every iteration.
///
/// | in the token                     | not in it, because it may differ between iterations       |
/// |----------------------------------|-----------------------------------------------------------|
/// | region, communicator             | tag                                                       |
/// | peer of a send, root             | peer of a receive: it may be from anybody                 |
/// | bytes, by powers of four         | what a Wait completes                                     |
///
/// Calls that poll (MPI_Test..., MPI_Iprobe, MPI_Improbe, MPI_Request_get_status) are no calls
/// here: how often they run is chance. Start and end of MPI are none either.
///
/// Thread: one.   Cost: a switch per event, a hash per call; memory of one location.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "writers/profile/local_ids.h"
#include "writers/writer.h"

namespace aon::writers::steps {

struct Call {
  uint64_t enter_ns;
  uint64_t leave_ns;
  uint64_t token;   ///< 0: polls, or begins or ends MPI
  uint32_t region;  ///< global id
  uint32_t weight;  ///< calls it stands for: of polls one in so many is timed
};

class CallScanner {
 public:
  explicit CallScanner(const Model& model);

  void begin(const Group& group);
  /// Adds an event; returns the call that it ends, else null. The call lives until the next one.
  const Call* add(const Event& event);
  bool is_in_call() const { return mpi_depth_ != 0; }
  uint32_t global_region(const Event& event) const { return regions_.global(event.region); }

 private:
  enum class Kind : uint8_t { kOther, kCall, kUncounted };

  void mix_in(const Event& event, uint64_t who);

  std::vector<Kind> kinds_;  ///< by global region
  profile::LocalIds regions_;
  profile::LocalIds communicators_;
  uint32_t depth_ = 0;      ///< of all regions
  uint32_t mpi_depth_ = 0;  ///< depth of the outermost MPI call, 0 outside
  uint64_t content_ = 0;
  Call call_{};
};

/// A well spread hash of two words.
constexpr uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace aon::writers::steps
