/// Another profiler plugin behind ours: NCCL takes one only. AON_NCCL_CHAIN names it as
/// NCCL_PROFILER_PLUGIN would, and it is called as NCCL would call it alone.
///
///     NCCL: start(context, parent) -> handle      numbers of ours, that stand for pairs
///        ours: start_event(own context, own parent) -> own handle  \  the pair, in a ring of
///        theirs: start(their context, their parent) -> their handle /  kPairs: the oldest goes
///
/// It is called where ours records nothing, too: at level off, without an agent, beyond our limits.
///
/// Theirs has to have the version of the interface that NCCL chose; of another NCCL in the program,
/// with another version, it is told nothing. It gets the events that its own
/// activation mask asks for, with the ancestors that NCCL would tell it for those. As NCCL has one
/// mask for all communicators, so there is one for theirs: every init gets its address, it may be
/// written at the first init alone or at any later time, which is seen at theirs' next event.
/// NCCL's mask is both plugins'. Handles and contexts of other processes (PXN) reach it as null:
/// the work of proxies has them. What its init declined it is not told.
///
/// Thread: any; init and finalize as of state.h.   Signal: no.
/// Cost: without a chain one load per callback. With it a copy of the descriptor, 24 bytes in the
/// ring, and whatever theirs does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nccl/interface.h"

namespace aon::nccl {

constexpr char kChainVariable[] = "AON_NCCL_CHAIN";

/// What all versions have, with arguments of their own for `init`.
struct ChainedPlugin {
  const char* name;
  void* init;
  int (*start)(void* context, void** handle, void* event);
  int (*stop)(void* handle);
  int (*state)(void* handle, int state, void* arguments);
  int (*finalize)(void* context);
};

/// The other plugin, or null. The first call loads it, and tells the ledger where it cannot. Null
/// although has_chain(): it cannot be told of an NCCL with this version.
/// Thread: init.
const ChainedPlugin* chained_plugin(int version);

/// Tells the ledger that its init returned `code`: it is told nothing of that communicator.
/// Thread: init.
void tell_failed_chain(int code);

/// Ends of events that neither plugin was told: kPairs others had begun since.   Thread: any.
constexpr uint64_t kPairs = uint64_t{1} << 18;
uint64_t lost_pair_ends();

/// True once a plugin is there.
bool has_chain();

/// Theirs of all communicators, as the address that it gets.
int* chained_mask();

/// Bits of it that stand in NCCL's mask.
int heeded_chained_mask();

/// Brings what theirs has changed into NCCL's `mask`, which is remembered.   Thread: init.
void heed_chained_mask(int* mask);

/// The context for both; ours is null where ours declined, `is_told`: their init succeeded. Null
/// when nobody is told, or there are more than kMaxContexts at a time, which the ledger is told.
/// Thread: init.
constexpr uint32_t kMaxContexts = 1u << 16;
void* keep_contexts(void* ours, void* theirs, bool is_told);

/// The same as the functions of state.h and operations.h, for both.
void finalize_both(void* context);
void* start_both(int version, void* context, const Descriptor* descriptor, uint64_t type);
void stop_both(void* handle);
void record_state_both(void* handle, int state, void* arguments);

}  // namespace aon::nccl
