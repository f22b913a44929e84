/// OTF2 archive of the call samples: FOLDER/samples/traces.otf2, one location per sampled thread.
///
/// Apart from the main archive, because OTF2 forbids samples beside Enter and Leave. Each sample is
/// a CallingContextSample that names a node of the tree of CallingContext definitions; functions
/// are regions, and a node has its source line where it is known. The InterruptGenerator says the
/// period.
///
/// Location ids are those of the main archive where the thread has one there; other threads follow
/// at kFirstOtherThread. Threads beyond kMaxThreadLocations of a process share one location.
/// Thread: one.   Cost: about 15 ns per sample, and a sort of those of one process; memory 13 MiB
/// whatever the number of threads, and 32 KiB per half a million of them; the rest is in a file in
/// the archive's folder until it is written.
#pragma once

#include <filesystem>
#include <memory>

#include "writers/writer.h"

namespace aon::writers {

constexpr uint64_t kFirstOtherThread = 0x10000;
constexpr size_t kMaxThreadLocations = 256;

/// A writer that makes the archive in `folder`/samples; nothing when there are no samples. Of an
/// assembly in shares each has a folder of its own, and who combines them moves the event files
/// (take_event_files of writers/otf2/archive.h) behind the last load().
std::unique_ptr<Writer> make_samples_writer(const std::filesystem::path& folder);

}  // namespace aon::writers
