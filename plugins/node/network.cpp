#include "node/network.h"

#include "node/text.h"

namespace aon::node {
namespace {

const std::string kNet = "/sys/class/net/";
const std::string kInfiniband = "/sys/class/infiniband/";
constexpr double kLaneBytes = 4;  ///< of port_xmit_data and port_rcv_data

struct CounterFile {
  const char* file;
  const char* series;
  const char* unit;
  double scale;
  const char* description;
};

constexpr CounterFile kInterfaceFiles[] = {
    {"rx_bytes", "received", "By", 1, "bytes received"},
    {"tx_bytes", "sent", "By", 1, "bytes sent"},
    {"rx_packets", "received-packets", "1", 1, "packets received"},
    {"tx_packets", "sent-packets", "1", 1, "packets sent"},
    {"rx_dropped", "received-drops", "1", 1, "packets received and dropped"},
    {"tx_dropped", "sent-drops", "1", 1, "packets dropped on their way out"},
    {"rx_errors", "received-errors", "1", 1, "bad packets received"},
    {"tx_errors", "sent-errors", "1", 1, "packets that could not be sent"},
};

constexpr CounterFile kPortFiles[] = {
    {"counters/port_rcv_data", "received", "By", kLaneBytes, "bytes received"},
    {"counters/port_xmit_data", "sent", "By", kLaneBytes, "bytes sent"},
    {"counters/port_rcv_packets", "received-packets", "1", 1, "packets received"},
    {"counters/port_xmit_packets", "sent-packets", "1", 1, "packets sent"},
    {"counters/port_rcv_errors", "received-errors", "1", 1, "bad packets received"},
    {"counters/port_xmit_discards", "sent-drops", "1", 1,
     "packets dropped because the port was down or congested"},
    {"counters/port_xmit_wait", "sent-waits", "1", 1,
     "ticks of the port's clock in which it had data and no credits to send them"},
    {"counters/symbol_error", "symbol-errors", "1", 1, "errors on the lanes"},
    {"counters/link_downed", "link-downs", "1", 1, "times the link went down"},
    {"hw_counters/out_of_sequence", "out-of-sequence", "1", 1, "packets received out of order"},
    {"hw_counters/local_ack_timeout_err", "ack-timeouts", "1", 1, "requests that timed out"},
    {"hw_counters/np_cnp_sent", "congestion-notices", "1", 1,
     "congestion notification packets sent"},
};

}  // namespace

std::vector<std::string> NetworkSession::interfaces() const {
  std::vector<std::string> cards;
  std::vector<std::string> others;
  for (const std::string& name : system_.list(kNet)) {
    if (name == "lo" || !system_.exists(kNet + name + "/statistics")) continue;
    (system_.exists(kNet + name + "/device") ? cards : others).push_back(name);
  }
  return cards.empty() && ports().empty() ? others : cards;
}

std::vector<std::string> NetworkSession::ports() const {
  std::vector<std::string> found;
  for (const std::string& device : system_.list(kInfiniband)) {
    for (const std::string& port : system_.list(kInfiniband + device + "/ports")) {
      found.push_back(device + "/ports/" + port);
    }
  }
  return found;
}

StateText NetworkSession::find() {
  if (!interfaces().empty() || !ports().empty()) return {};
  return {AON_STATE_OFF, "no network card is visible here", ""};
}

void NetworkSession::read_interface(const std::string& name) {
  for (const CounterFile& counter : kInterfaceFiles) {
    const File file = system_.read_again(kNet + name + "/statistics/" + counter.file);
    const auto raw = number_in(file.text);
    if (!file || !raw) continue;
    output_.count(AON_PROCESS_NODE,
                  {name + "-" + counter.series, counter.unit,
                   std::string(counter.description) + ", interface " + name + kShared},
                  *raw, counter.scale);
  }
}

void NetworkSession::read_port(const std::string& port) {
  const size_t slash = port.find('/');
  const std::string name = port.substr(0, slash) + "-" + port.substr(port.rfind('/') + 1);
  for (const CounterFile& counter : kPortFiles) {
    const File file = system_.read_again(kInfiniband + port + "/" + counter.file);
    const auto raw = number_in(file.text);
    if (!file || !raw) continue;  // not every driver has every counter
    output_.count(AON_PROCESS_NODE,
                  {name + "-" + counter.series, counter.unit,
                   std::string(counter.description) + ", port " + port + kShared},
                  *raw, counter.scale);
  }
}

void NetworkSession::read() {
  for (const std::string& name : interfaces()) read_interface(name);
  for (const std::string& port : ports()) read_port(port);
}

}  // namespace aon::node
