/// Another profiler plugin behind ours: NCCL takes one only. AON_NCCL_CHAIN names it as
/// NCCL_PROFILER_PLUGIN would, and it is called as NCCL would call it alone.
///
///     NCCL: start(context, parent) -> handle      a number of ours, that stands for a pair
///        ours: start_event(own context, own parent) -> own handle  \  the pair, in a ring of
///        theirs: start(their context, their parent) -> their handle /  kPairs: the oldest goes
///
/// Theirs has to have the version of the interface that NCCL chose; it gets the events that its own
/// activation mask asks for, with the ancestors that NCCL would tell it for those. As NCCL has one
/// mask for all communicators, so there is one for theirs: every init gets its address, it may be
/// written at the first init alone or at any later time, which is seen at theirs' next event.
/// NCCL's mask is both plugins'. Handles and contexts of other processes (PXN) reach it as null.
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

/// The other plugin, or null. The first call that finds the variable set loads it and tells the
/// ledger where it cannot.   Thread: init.
const ChainedPlugin* chained_plugin(int version);

/// True once a plugin is there.
bool has_chain();

/// Theirs of all communicators, as the address that it gets.
int* chained_mask();

/// Bits of it that stand in NCCL's mask.
int heeded_chained_mask();

/// Brings what theirs has changed into NCCL's `mask`, which is remembered.   Thread: init.
void heed_chained_mask(int* mask);

/// Of the communicator of `context`; `is_told`: its init succeeded.   Thread: init, finalize.
void set_chained(const void* context, void* their_context, bool is_told);
void* take_chained(const void* context);

/// The same as the functions of operations.h, for both.
void* start_both(int version, void* context, const Descriptor* descriptor, uint64_t type);
void stop_both(void* handle);
void record_state_both(void* handle, int state, void* arguments);

/// Whether a plugin with `mask` is told of an event (nccl 2.28.9, src/plugin/profiler.cc).
bool is_told(uint64_t type, uint64_t mask);

}  // namespace aon::nccl
