#include "nccl/words.h"

#include <string.h>

namespace aon::nccl {
namespace {

struct RegionWords {
  const char* function;  ///< NCCL's word in events
  const char* region;
  RegionRole role;
};
constexpr RegionWords kFunctions[kFunctionCount] = {
    {"Broadcast", "ncclBroadcast", RegionRole::kOneToAll},
    {"Reduce", "ncclReduce", RegionRole::kAllToOne},
    {"AllGather", "ncclAllGather", RegionRole::kAllToAll},
    {"ReduceScatter", "ncclReduceScatter", RegionRole::kAllToAll},
    {"AllReduce", "ncclAllReduce", RegionRole::kAllToAll},
    {"SendRecv", "ncclSendRecv", RegionRole::kPointToPoint},
    {"Send", "ncclSend", RegionRole::kPointToPoint},
    {"Recv", "ncclRecv", RegionRole::kPointToPoint},
    {"AlltoAll", "ncclAlltoAll", RegionRole::kAllToAll},
    {"Gather", "ncclGather", RegionRole::kAllToOne},
    {"Scatter", "ncclScatter", RegionRole::kOneToAll},
    {"", "ncclOther", RegionRole::kFunction},
};
constexpr char kGroupRegion[] = "ncclGroupEnd";

// In the order of NCCL's numbers; the values of ours are one higher.
constexpr const char* kTypes[] = {"Int8",    "Uint8",    "Int32",      "Uint32",
                                  "Int64",   "Uint64",   "Float16",    "Float32",
                                  "Float64", "Bfloat16", "Float8e4m3", "Float8e5m2"};
constexpr const char* kAlgorithms[] = {
    "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
constexpr const char* kProtocols[] = {"LL", "LL128", "SIMPLE"};
constexpr uint32_t kTypeNameBytes = 4;  ///< of "nccl" before each type

template <uint32_t kCount>
uint32_t find(const char* const (&words)[kCount], const char* name) {
  for (uint32_t i = 0; i < kCount; ++i) {
    if (words[i][0] == name[0] && strcmp(words[i], name) == 0) return i + 1;
  }
  return 0;
}

const Annotation* g_regions[kFunctionCount];  // constant after define_regions()
const Annotation* g_group;

}  // namespace

Function function_of(const char* name) {
  if (name == nullptr || name[0] == '\0') return Function::kOther;
  for (uint32_t i = 0; i + 1 < kFunctionCount; ++i) {
    const char* word = kFunctions[i].function;
    if (word[0] == name[0] && strcmp(word, name) == 0) return static_cast<Function>(i);
  }
  return strcmp(name, "AllToAll") == 0 ? Function::kAlltoAll : Function::kOther;
}

NcclType type_of(const char* name) {
  if (name == nullptr || strncmp(name, "nccl", kTypeNameBytes) != 0) return NcclType::kUnknown;
  const char* type = name + kTypeNameBytes;
  if (strcmp(type, "Half") == 0) return NcclType::kFloat16;
  if (strcmp(type, "Float") == 0) return NcclType::kFloat32;
  if (strcmp(type, "Double") == 0) return NcclType::kFloat64;
  return static_cast<NcclType>(find(kTypes, type));
}
NcclAlgorithm algorithm_of(const char* name) {
  return static_cast<NcclAlgorithm>(name == nullptr ? 0 : find(kAlgorithms, name));
}
NcclProtocol protocol_of(const char* name) {
  return static_cast<NcclProtocol>(name == nullptr ? 0 : find(kProtocols, name));
}

Function function_at(uint8_t number) {
  return number <= static_cast<uint8_t>(Function::kRecv) ? static_cast<Function>(number)
                                                         : Function::kOther;
}
NcclType type_at(uint8_t number) {
  return number + 1u < kNcclTypeCount ? static_cast<NcclType>(number + 1) : NcclType::kUnknown;
}
NcclAlgorithm algorithm_at(uint8_t number) {
  return number + 1u < kNcclAlgorithmCount ? static_cast<NcclAlgorithm>(number + 1)
                                           : NcclAlgorithm::kUnknown;
}
NcclProtocol protocol_at(uint8_t number) {
  return number + 1u < kNcclProtocolCount ? static_cast<NcclProtocol>(number + 1)
                                          : NcclProtocol::kUnknown;
}

uint32_t type_bytes(NcclType type) {
  static constexpr uint8_t kBytes[kNcclTypeCount] = {1, 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return kBytes[static_cast<uint8_t>(type)];
}

const Annotation* region_of(Function function) { return g_regions[static_cast<uint8_t>(function)]; }
const Annotation* group_region() { return g_group; }

void define_regions() {
  for (uint32_t i = 0; i < kFunctionCount; ++i) {
    const RegionWords& words = kFunctions[i];
    g_regions[i] = aon_find_annotation(words.region, static_cast<uint32_t>(strlen(words.region)),
                                       words.role, Paradigm::kNccl);
    aon_annotation_writer(g_regions[i], RecordKind::kMark);
  }
  g_group = aon_find_annotation(kGroupRegion, sizeof kGroupRegion - 1, RegionRole::kFunction,
                                Paradigm::kNccl);
  aon_annotation_writer(g_group, RecordKind::kMark);
}

}  // namespace aon::nccl
