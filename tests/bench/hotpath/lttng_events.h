// Tracepoints with the payload of an MPI_Isend: entry, and exit with the request.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER aon_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tests/bench/hotpath/lttng_events.h"

#if !defined(AON_BENCH_LTTNG_EVENTS_H_) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define AON_BENCH_LTTNG_EVENTS_H_

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(
    aon_bench, enter,
    LTTNG_UST_TP_ARGS(int, peer, int, tag, unsigned, communicator, unsigned long, bytes),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, peer, peer)
                            lttng_ust_field_integer(int, tag, tag)
                                lttng_ust_field_integer(unsigned, communicator, communicator)
                                    lttng_ust_field_integer(unsigned long, bytes, bytes)))

LTTNG_UST_TRACEPOINT_EVENT(aon_bench, exit, LTTNG_UST_TP_ARGS(unsigned long, request),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned long, request,
                                                                       request)))

#endif

#include <lttng/tracepoint-event.h>
