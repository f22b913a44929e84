#include "nccl/facts.h"

namespace aon::nccl {
namespace {

bool has_root(Function function) {
  return function == Function::kBroadcast || function == Function::kReduce ||
         function == Function::kGather || function == Function::kScatter;
}

int32_t root_of(Function function, int32_t root) { return has_root(function) ? root : kNoPeer; }

uint32_t captured_flag(bool is_captured) {
  return is_captured ? static_cast<uint32_t>(kNcclGraphCaptured) : 0;
}

/// Versions 2 to 7, whose collectives differ in nothing but the places.
template <class Coll>
Facts of_named_coll(WordCache& words, const Coll& event, uint64_t sequence) {
  Facts facts;
  facts.function = look_up<function_of>(words.function, event.function);
  facts.type = look_up<type_of>(words.type, event.type);
  facts.count = event.count;
  facts.peer = root_of(facts.function, event.root);
  facts.sequence = sequence;
  facts.channels = event.channel_count;
  facts.algorithm = look_up<algorithm_of>(words.algorithm, event.algorithm);
  facts.protocol = look_up<protocol_of>(words.protocol, event.protocol);
  return facts;
}

Facts of_first_coll(const CollEventV1& event) {
  Facts facts;
  facts.function = function_at(event.function);
  facts.type = type_at(event.type);
  facts.count = event.count;
  facts.peer = root_of(facts.function, event.root);
  facts.sequence = event.old.sequence;
  facts.channels = event.channel_count;
  facts.algorithm = algorithm_at(event.algorithm);
  facts.protocol = protocol_at(event.protocol);
  return facts;
}

template <class P2p>
Facts of_named_p2p(WordCache& words, const P2p& event) {
  Facts facts;
  facts.is_p2p = true;
  facts.function = look_up<function_of>(words.function, event.function);
  facts.type = look_up<type_of>(words.type, event.type);
  facts.count = event.count;
  facts.peer = event.peer;
  return facts;
}

}  // namespace

Facts of_coll_api(WordCache& words, const Descriptor* descriptor) {
  const CollApiEvent& event = as<CollApiEvent>(descriptor);
  Facts facts;
  facts.function = look_up<function_of>(words.function, event.function);
  facts.type = look_up<type_of>(words.type, event.type);
  facts.count = event.count;
  facts.peer = root_of(facts.function, event.root);
  facts.flags = captured_flag(event.graph_captured);
  return facts;
}

Facts of_p2p_api(WordCache& words, const Descriptor* descriptor) {
  const P2pApiEvent& event = as<P2pApiEvent>(descriptor);
  Facts facts;
  facts.function = look_up<function_of>(words.function, event.function);
  facts.type = look_up<type_of>(words.type, event.type);
  facts.count = event.count;
  facts.is_p2p = true;
  facts.flags = captured_flag(event.graph_captured);
  return facts;
}

Facts of_coll(int version, WordCache& words, const Descriptor* descriptor) {
  if (version >= 4) {
    const CollEvent& event = as<CollEvent>(descriptor);
    Facts facts = of_named_coll(words, event, event.sequence);
    facts.is_symmetric = version >= 7 && as<CollEventV7>(descriptor).is_symmetric != 0;
    return facts;
  }
  if (version == 1) return of_first_coll(as<CollEventV1>(descriptor));
  const uint64_t sequence = as<OldColl>(descriptor).sequence;
  return version == 3 ? of_named_coll(words, as<CollEventV3>(descriptor), sequence)
                      : of_named_coll(words, as<CollEventV2>(descriptor), sequence);
}

Facts of_copy_engines(WordCache& words, const Descriptor* descriptor) {
  const CollEvent& event = as<CollEvent>(descriptor);
  Facts facts;
  facts.function = look_up<function_of>(words.function, event.function);
  facts.type = look_up<type_of>(words.type, event.type);
  facts.count = event.count;
  facts.peer = root_of(facts.function, event.root);
  facts.flags = kNcclCopyEngines;
  return facts;
}

Facts of_p2p(int version, WordCache& words, const Descriptor* descriptor) {
  if (version >= 4) {
    const P2pEvent& event = as<P2pEvent>(descriptor);
    Facts facts = of_named_p2p(words, event);
    // Version 4 may not set it, and has no groups by which one that waits in vain would be seen.
    if (version > 4) facts.channels = event.channel_count;
    return facts;
  }
  if (version != 1) return of_named_p2p(words, as<P2pEventV2>(descriptor));
  const P2pEventV1& event = as<P2pEventV1>(descriptor);
  Facts facts;
  facts.is_p2p = true;
  facts.function = function_at(event.function);
  facts.type = type_at(event.type);
  facts.count = event.count;
  facts.peer = event.peer;
  return facts;
}

}  // namespace aon::nccl
