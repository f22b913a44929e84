/// What recording_notes.h has told, as it stands in the state (state.h): the worker after a killed
/// one goes on from it, or its first word would take the place of all that was said before.
/// Owner and thread: housekeeping of the worker; a count is stored behind what it counts, so a kill
/// leaves whole entries.   Cost: 96 KiB of the state.
#pragma once

#include <atomic>
#include <cstdint>

namespace aon::agent {

struct KeptNotes {
  static constexpr uint32_t kMostNames = 64;  ///< of all kinds: RecordingNotes names fewer
  static constexpr uint32_t kMostUnnamed = 4096;
  static constexpr uint32_t kNameBytes = 512;

  struct Name {
    uint32_t note;  ///< RecordingNote
    char program[kNameBytes];
  };
  struct Unnamed {
    uint32_t note;
    uint32_t reserved;
    uint64_t hash;  ///< of the program
  };
  std::atomic<uint32_t> name_count;
  std::atomic<uint32_t> unnamed_count;
  Name names[kMostNames];
  Unnamed unnamed[kMostUnnamed];
};

}  // namespace aon::agent
