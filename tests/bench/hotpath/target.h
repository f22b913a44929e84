/// Functions of "somebody else's library", with MPI_Isend's parameters. All do the same
/// nothing; the preloaded wrappers (wrappers.cpp, lttng_wrapper.cpp) do something to each.
#pragma once

#define HOTPATH_PARAMETERS \
  const void *buffer, int count, int datatype, int peer, int tag, void *communicator, void **request
#define HOTPATH_ARGUMENTS buffer, count, datatype, peer, tag, communicator, request

extern "C" {
int hotpath_plain(HOTPATH_PARAMETERS);     ///< not wrapped
int hotpath_forward(HOTPATH_PARAMETERS);   ///< a wrapper that only forwards
int hotpath_clock(HOTPATH_PARAMETERS);     ///< two clock reads, nothing recorded
int hotpath_recorded(HOTPATH_PARAMETERS);  ///< recorded in full
int hotpath_counted(HOTPATH_PARAMETERS);   ///< counted only
int hotpath_sampled(HOTPATH_PARAMETERS);   ///< counted, one in 32 timed
int hotpath_paused(HOTPATH_PARAMETERS);    ///< paused
int hotpath_lttng(HOTPATH_PARAMETERS);     ///< two LTTng-UST tracepoints with the same payload
void hotpath_event(void** request);        ///< a single event (a completion)
}
