/// The life of CUPTI's activity records in one process.
///
///     start(): in cuInit -> subscribed -> buffers and kinds are on -> our thread drains
///     stop():  at exit; the thread flushes, takes what comes, switches the kinds off, unsubscribes
///
/// CUPTI is never finalized (that stops the device and may hang), and never called under a lock:
/// our thread holds none, and its own calls of CUPTI are the only ones after start(). A fork()ed
/// child has neither thread nor CUDA: it only recognises itself. A FATAL_ERROR of CUPTI ends the
/// recording and says so.
///
/// AON_CUPTI_MODE: `exclusive` (default), `yield` (aon_gpu_pause() gives the subscription back
/// until aon_gpu_resume(); for good where the program has graphs), `off`. AON_CUPTI_API: `v1` (one
/// client per process also where several can be). AON_CUPTI_MEMORY: MiB of buffers, 256. The kinds:
/// kinds.h.
/// Thread: start() the one in cuInit, stop() the one that exits, the rest our own.
/// Cost: no work in the program's calls but CUPTI's own and, once per MiB of records, a buffer.
#pragma once

namespace aon::cupti {

/// Starts the recording, or writes into the ledger why not.
void start();

/// Ends it, waiting for the last records at most kStopMs.
void stop();

/// Gives the subscription back, or takes it again. False: not in mode yield, or not recording.
bool pause();
bool resume();

}  // namespace aon::cupti
