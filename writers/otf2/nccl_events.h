/// Events on the timeline of a communicator of NCCL in a process: regions with what NCCL told as
/// attributes, and in each the collective or transfer (nccl_timelines.h).
/// Owner: Otf2Writer.   Thread: one.   Cost: about 100 ns per operation.
#pragma once

#include <otf2/otf2.h>

#include <memory>
#include <string>
#include <unordered_map>

#include "writers/otf2/nccl_timelines.h"
#include "writers/writer.h"

namespace aon::writers::otf2 {

/// Names of algorithms, protocols and types are the strings of the archive from this id on.
constexpr uint32_t kFirstNcclString = 1;
/// All of them, in the order of their ids.
std::vector<std::string> nccl_strings();

class NcclEncoder {
 public:
  NcclEncoder(const Model& model, const NcclTimelines& timelines);

  /// From now on events go to `file`, which is that of the timeline `location`.
  void begin(OTF2_EvtWriter* file, const Location& location);

  OTF2_ErrorCode begin_operation(const Event& event);
  OTF2_ErrorCode end_operation(const Event& event);

 private:
  /// What a function of NCCL is in OTF2.
  struct Function {
    enum Kind { kRegion, kCollective, kSend, kReceive };
    Kind kind = kRegion;
    OTF2_CollectiveOp operation = OTF2_COLLECTIVE_OP_BARRIER;
    bool has_root = false;
    std::string name;
  };
  struct Bytes {
    uint64_t sent;
    uint64_t received;
  };
  Function find(uint32_t region) const;
  const Function& function_of(uint32_t region);
  bool is_member(int32_t rank) const {
    return rank >= 0 && static_cast<uint32_t>(rank) < rank_count_;
  }
  bool is_shown(const Function& function, const NcclOperation& operation) const;
  Bytes bytes_of(const Function& function, const NcclOperation& operation) const;
  void add_attributes(const Function& function, const NcclOperation& operation);
  OTF2_ErrorCode end_collective(const Function& function, const Event& event);

  struct ListDeleter {
    void operator()(OTF2_AttributeList* list) const { OTF2_AttributeList_Delete(list); }
  };

  const Model& model_;
  const NcclTimelines& timelines_;
  std::unique_ptr<OTF2_AttributeList, ListDeleter> attributes_;  ///< emptied by every write
  OTF2_EvtWriter* file_ = nullptr;
  const Group* group_ = nullptr;
  uint32_t rank_ = 0;        ///< of the process in the communicator
  uint32_t rank_count_ = 0;  ///< 0: its members are not known, only regions are shown
  std::unordered_map<uint32_t, Function> functions_;  ///< by local id of the region
};

}  // namespace aon::writers::otf2
