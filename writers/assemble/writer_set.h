/// The writers of an assembly.
/// Owner: assemble() and its shares.   Thread: one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "writers/assemble/event_pass.h"
#include "writers/devices/devices.h"
#include "writers/hang/hang.h"
#include "writers/hdf5/hdf5_writer.h"
#include "writers/ledger/findings.h"
#include "writers/ledger/totals.h"
#include "writers/nccl/lateness.h"
#include "writers/otf2/markers.h"
#include "writers/steps/steps.h"
#include "writers/waits/waits.h"

namespace aon::writers {

constexpr const char* kProfileName = "profile.h5";
constexpr const char* kArchiveName = "OTF2 archive";
constexpr const char* kSamplesName = "archive of samples";

/// Which writers take part. The same in all shares of an assembly.
struct WriterPlan {
  bool writes_otf2 = true;
  bool writes_hdf5 = true;
  bool nccl_as_mpi = false;
  bool has_room_for_devices = false;     ///< a location for each that has series
  bool has_room_for_counters = false;    ///< a second location for each thread that may set some
  bool has_room_for_waits = false;       ///< and one for each thread in the archive
  bool has_room_for_nccl_waits = false;  ///< and for each timeline of a communicator of NCCL
  bool may_hang = false;
  bool has_devices = false;
  uint64_t device_bytes = UINT64_MAX - 1;  ///< to sort their work
  uint64_t max_step_rows = kMaxStepRows;
  uint64_t most_markers = otf2::kMostMarkers;
};

/// What only the ledger needs of the events.
struct Collectors {
  Findings* findings = nullptr;
  TotalsCollector* totals = nullptr;
  StepMeter* steps = nullptr;
  DeviceAnalysis* devices = nullptr;           ///< null: there are none
  HangFinder* hangs = nullptr;                 ///< null: nothing was open or quiet for long
  nccl::LatenessAnalysis* lateness = nullptr;  ///< of operations of NCCL
  ProfileNotes notes;                          ///< of profile.h5
  std::vector<std::string> lacks;              ///< of the result, a line each
  otf2::JobMarkers markers;                    ///< of the archive; `known` is filled by assemble()
};

/// The writers of a whole job, in `folder`. `waits` (null: not analysed) outlives them.
std::vector<WriterSlot> make_writers(const std::filesystem::path& folder, const WriterPlan& plan,
                                     WaitAnalysis* waits, StepPlan steps, Collectors* collectors);

/// Those of a share: what has no file of its own they hand over (Writer::save). Series go to
/// `folder`/series/`name`.h5.
std::vector<WriterSlot> make_share_writers(const std::filesystem::path& folder,
                                           const std::string& name, const WriterPlan& plan,
                                           WaitAnalysis* waits, StepPlan steps);

}  // namespace aon::writers
