/// The network provider: what each network card of the node has sent and received.
///
/// Ethernet and the like: /sys/class/net/NAME/statistics
/// (Documentation/ABI/testing/sysfs-class-net-statistics); cards only, that is interfaces with a
/// device, and virtual interfaces other than lo only where there is no card. InfiniBand, Omni-Path
/// and RoCE: /sys/class/infiniband/NAME/ports/N/counters and hw_counters
/// (Documentation/ABI/stable/sysfs-class-infiniband: port_xmit_data and port_rcv_data are in units
/// of 4 bytes). MPI's own traffic is in the latter, past the kernel's network stack.
///
/// Owner: the provider.   Thread: the provider's.   Cost: 8 to 12 files per card, 5 us each, once a
/// second.
#pragma once

#include <string>
#include <vector>

#include "node/session.h"

namespace aon::node {

constexpr uint32_t kNetworkPeriodMs = 1000;

class NetworkSession : public Session {
 public:
  using Session::Session;

 protected:
  StateText find() override;
  void read() override;

 private:
  /// Interfaces that are read: cards come and go.
  std::vector<std::string> interfaces() const;
  /// Folders of ports, "mlx5_0/ports/1".
  std::vector<std::string> ports() const;
  void read_interface(const std::string& name);
  void read_port(const std::string& port);
};

}  // namespace aon::node
