// Events of files, in OTF2's words.

#include "writers/otf2/events.h"
#include "writers/otf2/io_modes.h"

namespace aon::writers::otf2 {
namespace {

OTF2_IoCreationFlag creation_flags(uint64_t mode) {
  OTF2_IoCreationFlag flags = OTF2_IO_CREATION_FLAG_NONE;
  if ((mode & kFileCreates) != 0) flags |= OTF2_IO_CREATION_FLAG_CREATE;
  if ((mode & kFileIsNew) != 0) flags |= OTF2_IO_CREATION_FLAG_EXCLUSIVE;
  if ((mode & kFileIsUnique) != 0) flags |= OTF2_IO_CREATION_FLAG_UNIQUE;
  if ((mode & kFileIsSequential) != 0) flags |= OTF2_IO_CREATION_FLAG_NO_SEEK;
  return flags;
}

OTF2_IoOperationMode operation_mode(IoOperation operation) {
  if (operation == IoOperation::kRead) return OTF2_IO_OPERATION_MODE_READ;
  return operation == IoOperation::kWrite ? OTF2_IO_OPERATION_MODE_WRITE
                                          : OTF2_IO_OPERATION_MODE_FLUSH;
}

OTF2_IoOperationFlag operation_flags(uint32_t io_flags) {
  OTF2_IoOperationFlag flags = OTF2_IO_OPERATION_FLAG_NONE;
  if ((io_flags & kIoCollective) != 0) flags |= OTF2_IO_OPERATION_FLAG_COLLECTIVE;
  if ((io_flags & (kIoNonblocking | kIoSplitBegin)) != 0) {
    flags |= OTF2_IO_OPERATION_FLAG_NON_BLOCKING;
  }
  return flags;
}

OTF2_IoSeekOption seek_option(uint32_t io_flags) {
  if ((io_flags & kIoFromCurrent) != 0) return OTF2_IO_SEEK_FROM_CURRENT;
  return (io_flags & kIoFromEnd) != 0 ? OTF2_IO_SEEK_FROM_END : OTF2_IO_SEEK_FROM_START;
}

}  // namespace

/// As create_window(): what opened the file may not be there, or be another thread's that is
/// written later.
OTF2_ErrorCode EventEncoder::open_file(const Event& event) {
  if (event.kind == EventKind::kIoDelete || !opened_files_.insert(event.file()).second)
    return OTF2_SUCCESS;
  if (event.kind == EventKind::kIoOpen)
    return OTF2_EvtWriter_IoCreateHandle(file_, nullptr, event.time_ns, event.file(),
                                         io_access_mode(event.bytes), creation_flags(event.bytes),
                                         io_status_flags(event.bytes));
  const auto& files = model_->groups[group_].file_map;
  const auto found = files.find(event.file());
  const uint32_t mode = found == files.end() ? 0 : model_->files[found->second].mode;
  if ((mode & kFileOpenedUnseen) != 0) return OTF2_SUCCESS;  // it needs none
  return OTF2_EvtWriter_IoCreateHandle(file_, nullptr, event.time_ns, event.file(),
                                       io_access_mode(mode), OTF2_IO_CREATION_FLAG_NONE,
                                       io_status_flags(mode));
}

OTF2_ErrorCode EventEncoder::io(const Event& event) {
  if (const OTF2_ErrorCode code = open_file(event); code != OTF2_SUCCESS) return code;
  switch (event.kind) {
    case EventKind::kIoOpen:
      return OTF2_SUCCESS;  // open_file() has written it
    case EventKind::kIoClose:
      return OTF2_EvtWriter_IoDestroyHandle(file_, nullptr, event.time_ns, event.file());
    case EventKind::kIoDelete:
      return OTF2_EvtWriter_IoDeleteFile(file_, nullptr, event.time_ns, kIoParadigm, event.file());
    case EventKind::kIoSeek:
      return OTF2_EvtWriter_IoSeek(file_, nullptr, event.time_ns, event.file(),
                                   static_cast<int64_t>(event.bytes), seek_option(event.io_flags()),
                                   event.offset());
    case EventKind::kIoBegin:
      return begin_io(event);
    case EventKind::kIoIssued:
      return OTF2_EvtWriter_IoOperationIssued(file_, nullptr, event.time_ns, event.file(),
                                              event.request);
    case EventKind::kIoCancelled:
      return OTF2_EvtWriter_IoOperationCancelled(file_, nullptr, event.time_ns, event.file(),
                                                 event.request);
    default:
      return OTF2_EvtWriter_IoOperationComplete(file_, nullptr, event.time_ns, event.file(),
                                                event.bytes, event.request);
  }
}

OTF2_ErrorCode EventEncoder::begin_io(const Event& event) {
  OTF2_AttributeList* attributes = nullptr;
  if (event.offset() != kUnknownOffset) {
    attributes = attributes_.get();
    OTF2_AttributeList_AddUint64(attributes, kOffset, event.offset());
  }
  return OTF2_EvtWriter_IoOperationBegin(
      file_, attributes, event.time_ns, event.file(), operation_mode(event.io_operation()),
      operation_flags(event.io_flags()), event.bytes, event.request);
}

}  // namespace aon::writers::otf2
