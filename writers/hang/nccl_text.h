/// Words for people about operations of NCCL and the members that are in them.
/// Thread: one.   Cost: of a string.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "writers/hang/hang.h"
#include "writers/hang/text.h"

namespace aon::writers {

class NcclWords : protected HangText {
 protected:
  /// Who came to an operation: those whose process had ended while others were still there, apart.
  struct Came {
    std::vector<NcclPart> here;
    std::vector<NcclPart> ended;
  };

  /// All outlives this.
  NcclWords(const Model& model, const HangReport& report, uint64_t now_ns);

  /// What is told of from here on: which processes are several members.
  void note_members(const NcclHang& hang);
  void note_members(const NcclDisagreement& disagreement);

  static NcclMember member_of(const NcclPart& part) { return {part.group, part.rank, part.slot}; }
  static std::vector<NcclMember> members_of(const std::vector<NcclPart>& parts);

  /// "rank 1 on n1 (pid 101)", or "rank 1 on n1 (pid 101; rank 3 of it, GPU 1)".
  std::string who(const NcclMember& member) const;
  std::string who(const NcclPart& part) const { return who(member_of(part)); }
  /// "0-2, 5", and where a process is several members "0 (ranks 0, 2-3 of it)".
  std::string list_of(const std::vector<NcclMember>& members) const;
  std::string list_of(const std::vector<NcclPart>& parts) const {
    return list_of(members_of(parts));
  }
  /// "rank 2 is", "ranks 0-1 are"
  std::string are(const std::vector<NcclMember>& members) const;
  /// Of the threads that called it, or else of the main threads.
  std::vector<std::string> stacks_of(const std::vector<NcclMember>& members) const;
  std::vector<std::string> stacks_of(const std::vector<NcclPart>& parts) const {
    return stacks_of(members_of(parts));
  }

  Came split(const NcclHang& hang) const;
  /// "ncclAllReduce 2 of world never ended: ranks 0-1 are in it"
  std::string came_text(const NcclHang& hang) const;

  bool is_transfer(const NcclHang& hang) const {
    return model_.regions[hang.region].role == RegionRole::kPointToPoint;
  }
  bool is_send(const NcclHang& hang) const { return region_name(hang.region) == "ncclSend"; }
  const std::string& region_name(uint32_t region) const { return model_.regions[region].name; }
  static std::string type_text(NcclType type);
  /// "ncclBroadcast with root 1 of 4 096 bytes of type float32"; roots by the communicator's ranks.
  std::string shape_text(const NcclShape& shape) const;
  std::string name_of(uint32_t communicator) const;
  /// "ncclAllReduce 4 of world", "ncclRecv 2 of world from rank 1 of it"; numbers begin with 1, as
  /// people count, and several that wait for one other end have numbers of their own.
  std::string operation(const NcclHang& hang) const;
  /// "ncclAllReduce 2 of 64 bytes", "ncclRecv 1 of 64 bytes from rank 1 of it"
  std::string part_text(const NcclPart& part) const;

  const Model& model_;

 private:
  bool is_one_of_several(uint32_t group) const;
  int32_t tid_of(uint32_t group, uint32_t slot) const;
  double end_seconds(uint32_t group) const;

  bool is_live_;                                ///< the job was looked at before its end
  std::vector<uint64_t> seen_ns_;               ///< by group: its last event, or stack
  uint32_t communicator_ = 0;                   ///< that is told of
  std::map<uint32_t, uint32_t> member_counts_;  ///< of it, by group
};

}  // namespace aon::writers
