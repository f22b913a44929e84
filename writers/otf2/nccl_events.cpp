#include "writers/otf2/nccl_events.h"

#include <cmath>
#include <string_view>

#include "writers/nccl/bandwidth.h"
#include "writers/nccl/names.h"
#include "writers/otf2/ids.h"

namespace aon::writers::otf2 {
namespace {

struct Words {
  std::string_view region;
  OTF2_CollectiveOp operation;
  bool has_root;
};
constexpr Words kCollectives[] = {
    {"ncclAllReduce", OTF2_COLLECTIVE_OP_ALLREDUCE, false},
    {"ncclAllGather", OTF2_COLLECTIVE_OP_ALLGATHER, false},
    {"ncclReduceScatter", OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK, false},
    {"ncclAlltoAll", OTF2_COLLECTIVE_OP_ALLTOALL, false},
    {"ncclBroadcast", OTF2_COLLECTIVE_OP_BCAST, true},
    {"ncclReduce", OTF2_COLLECTIVE_OP_REDUCE, true},
    {"ncclGather", OTF2_COLLECTIVE_OP_GATHER, true},
    {"ncclScatter", OTF2_COLLECTIVE_OP_SCATTER, true},
};

/// Nobody goes on before it has the others' data, and the data is there.
constexpr OTF2_RmaSyncLevel kLevel = OTF2_RMA_SYNC_LEVEL_PROCESS | OTF2_RMA_SYNC_LEVEL_MEMORY;

constexpr uint32_t kFirstProtocol = kFirstNcclString + kNcclAlgorithmCount;
constexpr uint32_t kFirstType = kFirstProtocol + kNcclProtocolCount - 1;  // one "unknown" for all
uint32_t string_of(uint32_t first, uint32_t value) {
  return value == 0 ? kFirstNcclString : first + value - (first == kFirstNcclString ? 0 : 1);
}

/// Each transfer has a tag of its own, so that one that is missing moves no other.
uint32_t tag_of(const NcclOperation& operation) {
  return static_cast<uint32_t>(operation.sequence) & 0x7fffffff;
}

}  // namespace

std::vector<std::string> nccl_strings() {
  std::vector<std::string> all(std::begin(nccl::kAlgorithmNames), std::end(nccl::kAlgorithmNames));
  all.insert(all.end(), std::begin(nccl::kProtocolNames) + 1, std::end(nccl::kProtocolNames));
  all.insert(all.end(), std::begin(nccl::kTypeNames) + 1, std::end(nccl::kTypeNames));
  return all;
}

NcclEncoder::NcclEncoder(const Model& model, const NcclTimelines& timelines)
    : model_(model), timelines_(timelines), attributes_(OTF2_AttributeList_New()) {}

void NcclEncoder::begin(OTF2_EvtWriter* file, const Location& location) {
  file_ = file;
  group_ = &model_.groups[location.group];
  functions_.clear();
  rank_ = group_->process->communicators.find(location.device_stream)->second.definition.rank;
  const auto global = group_->communicator_map.find(location.device_stream);
  rank_count_ = global == group_->communicator_map.end()
                    ? 0
                    : static_cast<uint32_t>(timelines_.members(global->second).size());
  if (rank_ >= rank_count_) rank_count_ = 0;
}

NcclEncoder::Function NcclEncoder::find(uint32_t region) const {
  Function function;
  const auto global = group_->region_map.find(region);
  if (global == group_->region_map.end()) return function;
  function.name = model_.regions[global->second].name;
  if (function.name == "ncclSend") function.kind = Function::kSend;
  if (function.name == "ncclRecv") function.kind = Function::kReceive;
  for (const Words& words : kCollectives) {
    if (words.region != function.name) continue;
    function.kind = Function::kCollective;
    function.operation = words.operation;
    function.has_root = words.has_root;
  }
  return function;
}

const NcclEncoder::Function& NcclEncoder::function_of(uint32_t region) {
  const auto known = functions_.find(region);
  if (known != functions_.end()) return known->second;
  return functions_[region] = find(region);
}

/// As a collective or transfer, with members that are known.
bool NcclEncoder::is_shown(const Function& function, const NcclOperation& operation) const {
  if (rank_count_ == 0 || function.kind == Function::kRegion) return false;
  return function.kind == Function::kCollective || is_member(operation.peer);
}

/// As Score-P counts: every pair of members that exchange data, one with itself included.
NcclEncoder::Bytes NcclEncoder::bytes_of(const Function& function,
                                         const NcclOperation& operation) const {
  const uint64_t one = operation.bytes;
  const uint64_t all = one * rank_count_;
  const bool is_root = operation.peer == static_cast<int32_t>(rank_);
  switch (function.operation) {
    case OTF2_COLLECTIVE_OP_BCAST:
    case OTF2_COLLECTIVE_OP_SCATTER:
      return {is_root ? all : 0, one};
    case OTF2_COLLECTIVE_OP_REDUCE:
    case OTF2_COLLECTIVE_OP_GATHER:
      return {one, is_root ? all : 0};
    default:
      return {all, all};
  }
}

void NcclEncoder::add_attributes(const Function& function, const NcclOperation& operation) {
  OTF2_AttributeList* list = attributes_.get();
  OTF2_AttributeList_AddUint64(list, kValue, operation.bytes);
  OTF2_AttributeList_AddUint64(list, kNcclSequence, operation.sequence);
  OTF2_AttributeList_AddUint64(list, kNcclCallCount, operation.call);
  OTF2_AttributeList_AddStringRef(
      list, kNcclAlgorithmName,
      string_of(kFirstNcclString, static_cast<uint32_t>(operation.algorithm)));
  OTF2_AttributeList_AddStringRef(
      list, kNcclProtocolName,
      string_of(kFirstProtocol, static_cast<uint32_t>(operation.protocol)));
  OTF2_AttributeList_AddStringRef(list, kNcclTypeName,
                                  string_of(kFirstType, static_cast<uint32_t>(operation.type)));
  OTF2_AttributeList_AddUint8(list, kNcclChannels, operation.channels);
  const bool is_timed = (operation.flags & kNcclGpuTimed) != 0;
  OTF2_AttributeList_AddUint8(list, kNcclIsTimed, is_timed ? 1 : 0);
  if (!is_timed) return;
  const double bytes_per_s =
      nccl::bandwidth(function.name, operation.bytes, operation.gpu_ns, rank_count_)
          .bus_bytes_per_s;
  if (std::isfinite(bytes_per_s))
    OTF2_AttributeList_AddDouble(list, kNcclBusBandwidth, bytes_per_s * 1e-9);
}

OTF2_ErrorCode NcclEncoder::begin_operation(const Event& event) {
  const NcclOperation& operation = event.nccl();
  const Function& function = function_of(event.region);
  add_attributes(function, operation);
  const OTF2_ErrorCode code =
      OTF2_EvtWriter_Enter(file_, attributes_.get(), event.time_ns, event.region);
  if (code != OTF2_SUCCESS || !is_shown(function, operation)) return code;
  const auto peer = static_cast<uint32_t>(operation.peer);
  const uint32_t communicator = operation.communicator;
  const bool as_mpi = timelines_.as_mpi();
  switch (function.kind) {
    case Function::kCollective:
      return as_mpi ? OTF2_EvtWriter_MpiCollectiveBegin(file_, nullptr, event.time_ns)
                    : OTF2_EvtWriter_RmaCollectiveBegin(file_, nullptr, event.time_ns);
    case Function::kSend:
      if (as_mpi)
        return OTF2_EvtWriter_MpiSend(file_, nullptr, event.time_ns, peer, communicator,
                                      tag_of(operation), operation.bytes);
      return OTF2_EvtWriter_RmaPut(file_, nullptr, event.time_ns, communicator, peer,
                                   operation.bytes, operation.call);
    case Function::kReceive:
      if (as_mpi) return OTF2_SUCCESS;  // at its end
      return OTF2_EvtWriter_RmaGet(file_, nullptr, event.time_ns, communicator, peer,
                                   operation.bytes, operation.call);
    case Function::kRegion:
      break;
  }
  return OTF2_SUCCESS;
}

OTF2_ErrorCode NcclEncoder::end_collective(const Function& function, const Event& event) {
  const NcclOperation& operation = event.nccl();
  const Bytes bytes = bytes_of(function, operation);
  const uint32_t root = function.has_root && is_member(operation.peer)
                            ? static_cast<uint32_t>(operation.peer)
                            : OTF2_COLLECTIVE_ROOT_NONE;
  if (timelines_.as_mpi())
    return OTF2_EvtWriter_MpiCollectiveEnd(file_, nullptr, event.time_ns, function.operation,
                                           operation.communicator, root, bytes.sent,
                                           bytes.received);
  return OTF2_EvtWriter_RmaCollectiveEnd(file_, nullptr, event.time_ns, function.operation, kLevel,
                                         operation.communicator, root, bytes.sent, bytes.received);
}

OTF2_ErrorCode NcclEncoder::end_operation(const Event& event) {
  const NcclOperation& operation = event.nccl();
  const Function& function = function_of(event.region);
  OTF2_ErrorCode code = OTF2_SUCCESS;
  if (is_shown(function, operation)) {
    if (function.kind == Function::kCollective) {
      code = end_collective(function, event);
    } else if (!timelines_.as_mpi()) {
      code = OTF2_EvtWriter_RmaOpCompleteBlocking(file_, nullptr, event.time_ns,
                                                  operation.communicator, operation.call);
    } else if (function.kind == Function::kReceive) {
      code = OTF2_EvtWriter_MpiRecv(file_, nullptr, event.time_ns,
                                    static_cast<uint32_t>(operation.peer), operation.communicator,
                                    tag_of(operation), operation.bytes);
    }
  }
  if (code != OTF2_SUCCESS) return code;
  return OTF2_EvtWriter_Leave(file_, nullptr, event.time_ns, event.region);
}

}  // namespace aon::writers::otf2
