/// The open files of this process: their ids in records, their identity, which all members of the
/// communicator compute alike without communicating, and what offsets in their view mean.
///
/// An offset in a record is in bytes from the start of the file, where this process can know it:
///
///     explicit (_at)      where the view has no holes: displacement + offset * bytes of the etype;
///                         else MPI_File_get_byte_offset, which is local
///     individual pointer  MPI_File_get_position, which is local, then as above. In a view with
///                         holes a library may walk over all tiles before it, so far pointers are
///                         not asked for there (kMaxTilesAsked)
///     shared pointer      unknown: another process may have moved it
///
/// and unknown where the file is sequential or its data is not "native".
///
/// Owner: entries are used again after MPI_File_close.
/// Thread: look-ups take no lock; changes take one. Split collectives are, as the standard demands,
/// one at a time per file.
/// Cost: look-up about 3 ns; asking for the pointer about 0.1 us.
#pragma once

#include <aon/definition.h>
#include <aon/mpi_records.h>
#include <aon/record.h>

#include "mpi/call.h"
#include "mpi/communicators.h"
#include "mpi/datatypes.h"
#include "mpi/handles.h"
#include "mpi/requests.h"

namespace aon::mpi {

constexpr int64_t kMaxTilesAsked = 64;  ///< of the filetype before the pointer

struct File {
  Handle handle;
  uint32_t id;    ///< in records; 0: no file that we know
  uint32_t mode;  ///< FileMode
  int64_t displacement;
  int64_t etype_bytes;
  int64_t tile_bytes;                  ///< of data in one filetype
  std::atomic<int64_t> last_position;  ///< of the individual pointer, when it was last asked for
  bool is_native;
  bool has_holes;
  uint64_t split_request;  ///< number of the split collective under way; 0 none
  File* next_free;
};

/// The file of `handle`, or an entry with id 0.
File* find_file(Handle handle) noexcept;

/// How often members of `c` opened a file, this time included. Must be called for every opening,
/// also for one that fails.
uint32_t count_opening(Communicator* c);

/// The communicator after an opening that MPI took. One that was not known before is counted now.
Communicator* settled_opener(Communicator* before, Handle handle, uint32_t* opening);

/// Defines the file that was opened as the `opening`th on `c`. `is_recorded`: finish_open()
/// follows.
File* add_file(const Communicator& c, uint32_t opening, Handle handle, const char* name, int mode,
               bool is_recorded) noexcept;

/// Takes a file that is about to be closed out of the table: another thread may get its handle
/// before we are back.
File* take_file(Handle handle) noexcept;

/// The file is closed, or, when MPI refused, still there.
void end_file(File* file, int result) noexcept;

void set_view(File* file, int64_t displacement, Handle etype, Handle filetype,
              const char* representation) noexcept;

/// A read or write as its call asks for it.
struct Transfer {
  File* file;
  uint64_t bytes;
  uint64_t offset;
  IoOperation operation;
  uint32_t flags;

  uint64_t operation_flags() const {
    return pack_pair(static_cast<int32_t>(operation), static_cast<int32_t>(flags));
  }
};

constexpr int64_t kAtPointer = INT64_MIN;  ///< no offset among the arguments

/// Before the real call, outside of any other.
Transfer begin_transfer(File* file, IoOperation operation, uint32_t flags, int64_t offset,
                        int64_t count, Handle datatype) noexcept;

/// After the call: the bytes of a derived type, if MPI took it.
[[gnu::always_inline]] inline void settle(Transfer* transfer, int64_t count, Handle datatype,
                                          int result) {
  if (AON_LIKELY(is_basic(datatype)) || result != kSuccess) return;
  transfer->bytes = bytes_of(count, datatype);
}

void finish_transfer(const OpenCall& call, const Transfer& transfer, const Status* status,
                     int result) noexcept;
void finish_start_transfer(const OpenCall& call, const Transfer& transfer, Handles request,
                           int result) noexcept;
/// Nonblocking collectives on files that were recorded, and whose end was not.
inline std::atomic<int64_t> live_file_collectives{0};
inline bool has_live_file_collectives() {
  return live_file_collectives.load(std::memory_order_relaxed) > 0;
}
/// The read or write of a request that was recorded (RequestKind::kFile) is over.
inline void note_transfer_over(const Request& request) {
  if ((static_cast<uint32_t>(request.tag) >> 8 & kIoCollective) != 0)
    live_file_collectives.fetch_sub(1, std::memory_order_relaxed);
}
void finish_begin_split(const OpenCall& call, const Transfer& transfer, int result) noexcept;
/// Split collectives that are under way and were recorded.
bool has_live_splits() noexcept;
/// One ends while the recording is paused.
void forget_split(File* file) noexcept;
void finish_end_split(const OpenCall& call, File* file, IoOperation operation, uint32_t flags,
                      const Status* status, int result) noexcept;
void finish_seek(const OpenCall& call, File* file, int64_t offset, int whence, uint32_t flags,
                 int result) noexcept;
/// MPI_File_sync, or a call that changes the file; the size to `byte_count`.
void finish_file_call(const OpenCall& call, const File& file, IoOperation operation,
                      int64_t byte_count, int result) noexcept;
void finish_delete(const OpenCall& call, const char* name, int result) noexcept;
void finish_open(const OpenCall& call, const File& file, int result) noexcept;
void finish_close(const OpenCall& call, const File& file, int result) noexcept;
void finish_set_view(const OpenCall& call, const File& file, int64_t displacement,
                     int result) noexcept;

}  // namespace aon::mpi
