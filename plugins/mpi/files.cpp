#include "mpi/files.h"

#include <string.h>

#include "mpi/fortran.h"
#include "mpi/groups.h"
#include "mpi/handle_map.h"
#include "mpi/library.h"
#include "mpi/lock.h"
#include "mpi/memory.h"
#include "mpi/state.h"

namespace aon::mpi {
namespace {

constexpr uint32_t kArenaCount = 64;
constexpr const char* kNative = "native";

SpinLock g_lock;
SharedHandleMap g_table;  // handle -> File*; read without the lock
uint32_t g_next_id AON_GUARDED_BY(g_lock) = 1;
File* g_arena AON_GUARDED_BY(g_lock);
uint32_t g_arena_left AON_GUARDED_BY(g_lock);
File* g_free AON_GUARDED_BY(g_lock);  // closed ones
constinit File g_none{};              // id 0
std::atomic<int64_t> g_live_splits;

/// Null: no memory.
File* new_file() AON_REQUIRES(g_lock) {
  if (g_free != nullptr) {
    File* file = g_free;
    g_free = file->next_free;
    return file;
  }
  if (g_arena_left == 0) {
    g_arena = static_cast<File*>(map_bytes(sizeof(File) * kArenaCount));
    if (g_arena == nullptr) return nullptr;
    g_arena_left = kArenaCount;
  }
  --g_arena_left;
  return g_arena++;
}

void define(const FileDefinition& definition, const char* name) {
  aon_define(static_cast<uint32_t>(DefinitionType::kFile), &definition, sizeof definition, name,
             static_cast<uint32_t>(strlen(name)) + 1);
}

/// FileMode of the library's number.
uint32_t file_mode(int mode) {
  const FileAbi& a = abi.file;
  const auto has = [mode](int32_t bits) { return (mode & bits) != 0; };
  uint32_t result = 0;
  if (has(a.read_only) || has(a.read_write)) result |= kFileReads;
  if (has(a.write_only) || has(a.read_write)) result |= kFileWrites;
  if (has(a.create)) result |= kFileCreates;
  if (has(a.exclusive)) result |= kFileIsNew;
  if (has(a.delete_on_close)) result |= kFileDeletedOnClose;
  if (has(a.unique_open)) result |= kFileIsUnique;
  if (has(a.sequential)) result |= kFileIsSequential;
  if (has(a.append)) result |= kFileAppends;
  return result;
}

/// True when a datatype is a row of bytes without gaps, in memory and when it is repeated.
bool is_dense(Handle datatype, int64_t byte_count) {
  int64_t lower = 0;
  int64_t extent = 0;
  int64_t true_lower = 0;
  int64_t true_extent = 0;
  if (queries.type_get_extent == nullptr || queries.type_get_true_extent == nullptr) return false;
  if (queries.type_get_extent(datatype, &lower, &extent) != kSuccess) return false;
  if (queries.type_get_true_extent(datatype, &true_lower, &true_extent) != kSuccess) return false;
  return lower == 0 && true_lower == 0 && extent == byte_count && true_extent == byte_count;
}

void start_view(File* file, int64_t displacement, int64_t etype_bytes, int64_t tile_bytes) {
  file->displacement = displacement;
  file->etype_bytes = etype_bytes;
  file->tile_bytes = tile_bytes;
  file->last_position.store(0, std::memory_order_relaxed);
  file->is_native = true;
  file->has_holes = false;
}

/// The questions below are errors for other files, and an error handler of the program would hear
/// of them.
bool has_offsets(const File& file) {
  return file.id != 0 && file.is_native && (file.mode & kFileIsSequential) == 0 && mpi_is_usable();
}

/// Where `position`, in etypes of the view, lies in the file.
uint64_t offset_of(const File& file, int64_t position) {
  if (!has_offsets(file) || position < 0) return kUnknownOffset;
  int64_t offset = 0;
  if (!file.has_holes) {
    if (__builtin_mul_overflow(position, file.etype_bytes, &offset) ||
        __builtin_add_overflow(offset, file.displacement, &offset)) {
      return kUnknownOffset;
    }
  } else if (queries.file_get_byte_offset == nullptr ||
             queries.file_get_byte_offset(file.handle, position, &offset) != kSuccess) {
    return kUnknownOffset;
  }
  return offset < 0 ? kUnknownOffset : static_cast<uint64_t>(offset);
}

/// Where the individual pointer stands.
uint64_t pointer_offset(File* file) {
  if (!has_offsets(*file) || queries.file_get_position == nullptr) return kUnknownOffset;
  if (file->has_holes) {
    const int64_t last_position = file->last_position.load(std::memory_order_relaxed);
    const int64_t etypes_of_tile = file->tile_bytes / file->etype_bytes;
    if (last_position / kMaxTilesAsked > etypes_of_tile) return kUnknownOffset;
  }
  int64_t position = 0;
  if (queries.file_get_position(file->handle, &position) != kSuccess) return kUnknownOffset;
  file->last_position.store(position, std::memory_order_relaxed);
  return offset_of(*file, position);
}

uint64_t operation_flags(IoOperation operation, uint32_t flags) {
  return pack_pair(static_cast<int32_t>(operation), static_cast<int32_t>(flags));
}

void finish(const OpenCall& call, const Transfer& transfer, uint64_t moved_bytes, uint64_t request,
            int result) {
  finish_io(call, failed(result), transfer.file->id, moved_bytes, transfer.operation_flags(),
            transfer.offset, request, transfer.bytes);
}

/// Of a call without a status, where a library takes a null pointer for that, nobody knows.
uint64_t moved_bytes(const Status* status, int result) {
  return result == kSuccess && status != nullptr ? status_bytes(status) : 0;
}

}  // namespace

File* find_file(Handle handle) noexcept {
  void* found = handle > 1 ? g_table.find(handle) : nullptr;
  return found != nullptr ? static_cast<File*>(found) : &g_none;
}

uint32_t count_opening(Communicator* c) {
  return c->opening_count.fetch_add(1, std::memory_order_relaxed) + 1;
}

Communicator* settled_opener(Communicator* before, Handle handle, uint32_t* opening) {
  Communicator* c = settled(before, handle, kSuccess);
  if (c != before) *opening = count_opening(c);
  return c;
}

File* add_file(const Communicator& c, uint32_t opening, Handle handle, const char* name, int mode,
               bool is_recorded) noexcept {
  if (handle <= 1 || name == nullptr || !library_is_known()) return &g_none;
  Guard guard(&g_lock);
  File* file = new_file();
  if (file == nullptr) return &g_none;
  file->handle = handle;
  file->id = g_next_id++;
  file->mode = file_mode(mode);
  if (!is_recorded) file->mode |= kFileOpenedUnseen;
  file->split_request = 0;
  start_view(file, 0, 1, 1);
  // Not by the name, which each member may spell in its own way.
  const uint64_t identity = mix(mix(c.identity, opening), static_cast<uint64_t>(mode));
  define({identity, file->id, c.id, file->mode, 0}, name);
  g_table.put(handle, file);
  return file;
}

File* take_file(Handle handle) noexcept {
  if (handle <= 1) return &g_none;
  Guard guard(&g_lock);
  auto* file = static_cast<File*>(g_table.take(handle));
  return file != nullptr ? file : &g_none;
}

void end_file(File* file, int result) noexcept {
  if (file == &g_none) return;
  Guard guard(&g_lock);
  if (result != kSuccess) {
    g_table.put(file->handle, file);
    return;
  }
  const IdDefinition definition = {file->id};
  aon_define(static_cast<uint32_t>(DefinitionType::kFileClose), &definition, sizeof definition,
             nullptr, 0);
  forget_split(file);
  file->next_free = g_free;
  g_free = file;
}

void set_view(File* file, int64_t displacement, Handle etype, Handle filetype,
              const char* representation) noexcept {
  if (file->id == 0) return;
  const auto tile_bytes = static_cast<int64_t>(datatype_bytes(filetype));
  const auto etype_bytes = static_cast<int64_t>(datatype_bytes(etype));
  start_view(file, displacement, etype_bytes > 0 ? etype_bytes : 1, tile_bytes);
  file->is_native = representation != nullptr && strcmp(representation, kNative) == 0;
  file->has_holes = !is_dense(filetype, tile_bytes);
}

Transfer begin_transfer(File* file, IoOperation operation, uint32_t flags, int64_t offset,
                        int64_t count, Handle datatype) noexcept {
  const Inside inside;  // a library may ask itself by MPI_ names
  const uint64_t bytes = is_basic(datatype) ? bytes_of(count, datatype) : 0;
  Transfer transfer = {file, bytes, kUnknownOffset, operation, flags};
  if ((flags & kIoShared) != 0) return transfer;
  transfer.offset = offset == kAtPointer ? pointer_offset(file) : offset_of(*file, offset);
  return transfer;
}

void finish_transfer(const OpenCall& call, const Transfer& transfer, const Status* status,
                     int result) noexcept {
  finish(call, transfer, moved_bytes(status, result), next_request_number(), result);
}

void finish_start_transfer(const OpenCall& call, const Transfer& transfer, Handles request,
                           int result) noexcept {
  const uint64_t number = next_request_number();
  finish_io(call, static_cast<uint16_t>(failed(result) | kNonblocking), transfer.file->id, 0,
            transfer.operation_flags(), transfer.offset, number, transfer.bytes);
  if (result != kSuccess) return;
  if ((transfer.flags & kIoCollective) != 0)
    live_file_collectives.fetch_add(1, std::memory_order_relaxed);
  const auto packed = static_cast<uint32_t>(transfer.operation) | transfer.flags << 8;
  put_request(call.w, {load_handle(request),
                       number,
                       transfer.bytes,
                       nullptr,
                       static_cast<int32_t>(transfer.file->id),
                       static_cast<int32_t>(packed),
                       {0},
                       RequestKind::kFile,
                       false});
}

bool has_live_splits() noexcept { return g_live_splits.load(std::memory_order_relaxed) > 0; }

void forget_split(File* file) noexcept {
  if (file->split_request == 0) return;
  file->split_request = 0;
  g_live_splits.fetch_sub(1, std::memory_order_relaxed);
}

void finish_begin_split(const OpenCall& call, const Transfer& transfer, int result) noexcept {
  const uint64_t number = next_request_number();
  if (result == kSuccess) {
    forget_split(transfer.file);
    transfer.file->split_request = number;
    g_live_splits.fetch_add(1, std::memory_order_relaxed);
  }
  finish(call, transfer, 0, number, result);
}

void finish_end_split(const OpenCall& call, File* file, IoOperation operation, uint32_t flags,
                      const Status* status, int result) noexcept {
  const uint64_t number = file->split_request;
  if (number == 0) {  // begun while paused, or never
    finish_span(call, failed(result));
    return;
  }
  forget_split(file);
  const Transfer transfer = {file, 0, kUnknownOffset, operation, flags};
  finish(call, transfer, moved_bytes(status, result), number, result);
}

void finish_seek(const OpenCall& call, File* file, int64_t offset, int whence, uint32_t flags,
                 int result) noexcept {
  const bool is_from_start = whence != abi.file.seek_current && whence != abi.file.seek_end;
  if (whence == abi.file.seek_current) flags |= kIoFromCurrent;
  if (whence == abi.file.seek_end) flags |= kIoFromEnd;
  uint64_t place = kUnknownOffset;
  if (result == kSuccess && is_from_start) {
    place = offset_of(*file, offset);
    if ((flags & kIoShared) == 0) file->last_position.store(offset, std::memory_order_relaxed);
  } else if (result == kSuccess && (flags & kIoShared) == 0) {
    place = pointer_offset(file);
  }
  const uint64_t distance =
      static_cast<uint64_t>(offset) * static_cast<uint64_t>(file->etype_bytes);
  finish_io(call, failed(result), file->id, 0, operation_flags(IoOperation::kSeek, flags), place,
            next_request_number(), distance);
}

void finish_file_call(const OpenCall& call, const File& file, IoOperation operation,
                      int64_t byte_count, int result) noexcept {
  finish_io(call, failed(result), file.id, 0, operation_flags(operation, kIoCollective),
            kUnknownOffset, next_request_number(), static_cast<uint64_t>(byte_count));
}

void finish_delete(const OpenCall& call, const char* name, int result) noexcept {
  uint32_t id = 0;
  if (result == kSuccess && name != nullptr) {
    Guard guard(&g_lock);
    id = g_next_id++;
    define({0, id, 0, 0, 0}, name);
  }
  finish_io(call, failed(result), id, 0, operation_flags(IoOperation::kDelete, 0), kUnknownOffset,
            next_request_number(), 0);
}

void finish_open(const OpenCall& call, const File& file, int result) noexcept {
  finish_io(call, failed(result), file.id, 0, operation_flags(IoOperation::kOpen, kIoCollective),
            kUnknownOffset, next_request_number(), file.mode);
}

void finish_close(const OpenCall& call, const File& file, int result) noexcept {
  uint32_t flags = kIoCollective;
  if ((file.mode & kFileDeletedOnClose) != 0) flags |= kIoDeletes;
  finish_io(call, failed(result), file.id, 0, operation_flags(IoOperation::kClose, flags),
            kUnknownOffset, next_request_number(), 0);
}

void finish_set_view(const OpenCall& call, const File& file, int64_t displacement,
                     int result) noexcept {
  const bool is_known = displacement >= 0;
  finish_io(call, failed(result), file.id, 0, operation_flags(IoOperation::kSetView, kIoCollective),
            is_known ? static_cast<uint64_t>(displacement) : kUnknownOffset, next_request_number(),
            0);
}

}  // namespace aon::mpi
