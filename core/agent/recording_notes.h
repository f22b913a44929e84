/// What the node's provider "recording" says: several causes have one line of the ledger, and each
/// names its programs once.
/// What is told stands in the state as well, for the worker after a killed one (kept_notes.h).
/// Owner and thread: housekeeping.   Cost: a definition where something is new.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/agent/inbox.h"
#include "core/agent/kept_notes.h"

namespace aon::agent {

enum class RecordingNote : uint32_t {
  kLeftAlone,     ///< a program that `aon avoid` lists
  kNotLookedAt,   ///< computes, and the look at it hangs (followable_looks.h)
  kTooManyBelow,  ///< there are kMostBelow already (programs_below.h); of no program
  kKilledEarly,   ///< has connected, and was killed before it had an answer
  kToldToEnd,     ///< SIGTERM, while programs ran; of no program
};

class RecordingNotes {
 public:
  /// Goes on from `kept`.
  RecordingNotes(Inbox* inbox, KeptNotes* kept);

  /// Once more what earlier workers told: the last of it may have gone with them.
  void tell_again();
  /// `program`: with what tells it from others of its kind.
  void add(RecordingNote note, const std::string& program);

 private:
  static constexpr size_t kMostNamed = 8;  ///< of a kind
  static constexpr size_t kMostKnown = 4096;

  struct Programs {
    std::vector<std::string> names;
    std::set<uint64_t> unnamed;  ///< hashes of their names, kMostKnown of them
  };
  void keep_name(RecordingNote note, const std::string& program);
  void keep_unnamed(RecordingNote note, uint64_t hash);
  void tell();

  Inbox* inbox_;
  KeptNotes* kept_;
  std::map<RecordingNote, Programs> notes_;
};

}  // namespace aon::agent
