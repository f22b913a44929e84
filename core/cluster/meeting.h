/// Where the agents of a launch find each other when the job directory is on a disk of each node: a
/// folder of the launch below one that all nodes see (--rendezvous, ~/.aon/launches by default). It
/// holds addresses (address.h) and nothing of the job, and goes with the last agent.
///
/// Only a process of its own touches it (core/agent/transfer.h): a home directory may hang.
/// Thread: any.   Cost: a few file operations.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <string>

#include "core/base/result.h"
#include "core/cluster/address.h"

namespace aon::cluster {

/// Name of the address of the agent that takes the spools of the others (core/delivery).
constexpr char kReceiverName[] = ".receiver";

/// False for file systems that are known to be on a network. True where it is not known: nodes that
/// share the directory all the same find that out.
bool is_on_disk_of_node(const std::string& folder);

/// Writes an address into it, and makes it before. Errors: kInvalid when it is not this user's
/// alone; kIo.
Status announce_at(const std::string& meeting, const std::string& node,
                   const AgentAddress& address);
/// Takes the address back if it is still this one, and removes the folder when it was the last.
void withdraw_from(const std::string& meeting, const std::string& node, const Token& token);
/// Removes the addresses that launches left below the same folder that were killed a week ago.
/// `meeting` is one that was announced at just now.
void remove_forgotten(const std::string& meeting);

/// Keeps DIR/agents as if all nodes saw it: this node's address goes to the meeting folder, those
/// of the others come from there. An address that has not changed is read once: thousands of nodes
/// look at each other's, in a folder that may be in a home directory.
/// Owner: a process that may be killed at any time.   Thread: one.   Cost of a look: a stat() per
/// node.
class AddressMirror {
 public:
  AddressMirror(std::string agents, std::string meeting, std::string node)
      : agents_(std::move(agents)), meeting_(std::move(meeting)), node_(std::move(node)) {}
  /// Takes back what it wrote.
  ~AddressMirror();
  AddressMirror(const AddressMirror&) = delete;
  AddressMirror& operator=(const AddressMirror&) = delete;

  /// Looks when it is time: every 200 ms at first, later every half minute.
  void step();
  bool is_early() const;

 private:
  /// The address of another node.
  struct Other {
    Token token;
    struct stat file;  ///< of the meeting folder, when it was read
    bool is_brought;   ///< to agents_, which is not seen by its owner
  };

  void tell_own(int64_t now_ms);
  void take_others();
  void take(const std::string& node);

  std::string agents_;
  std::string meeting_;
  std::string node_;
  Token own_{};
  bool has_told_ = false;
  int64_t told_ms_ = 0;
  int64_t next_look_ms_ = 0;
  int64_t started_ms_ = 0;
  std::map<std::string, Other> others_;
};

}  // namespace aon::cluster
