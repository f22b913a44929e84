#include "core/agent/recording_notes.h"

#include <aon/definition.h>

#include <algorithm>

#include "core/agent/programs_below.h"
#include "core/spool/format.h"

namespace aon::agent {
namespace {

struct Words {
  const char* reason;  ///< in front of the programs
  const char* remedy;
};

static_assert(kMostBelow == 256, "words_of() says it");

Words words_of(RecordingNote note) {
  switch (note) {
    case RecordingNote::kLeftAlone:
      return {"left alone, as aon avoid lists it: ", "aon avoid --remove PROGRAM, to try again"};
    case RecordingNote::kNotLookedAt:
      return {"not followed, for the kernel does not answer what it runs: ",
              "aon-run --without mpi follows it from its start"};
    case RecordingNote::kTooManyBelow:
      return {"more than 256 programs that others started compute: later ones are not followed",
              "aon-run before such a program"};
    case RecordingNote::kKilledEarly:
      return {"killed before it was registered: ", ""};
    case RecordingNote::kToldToEnd:
      break;
  }
  return {"the agent was told to end (SIGTERM) while programs ran; nothing since", ""};
}

void append(std::string* text, const std::string& more) {
  if (more.empty()) return;
  *text += (text->empty() ? "" : "; ") + more;
}

}  // namespace

void RecordingNotes::add(RecordingNote note, const std::string& program) {
  const bool is_first = notes_.count(note) == 0;
  Programs& programs = notes_[note];
  const bool is_named =
      std::find(programs.names.begin(), programs.names.end(), program) != programs.names.end();
  if (!is_first && is_named) return;
  if (programs.names.size() < kMostNamed) {
    programs.names.push_back(program);
  } else if (programs.unnamed.size() >= kMostKnown || !programs.unnamed.insert(program).second) {
    return;
  }
  std::string reason;
  std::string remedy;
  for (const auto& [said, its] : notes_) {
    const Words words = words_of(said);
    std::string text = words.reason;
    for (const std::string& name : its.names) text += (&name == &its.names[0] ? "" : ", ") + name;
    if (!its.unnamed.empty()) text += " and " + std::to_string(its.unnamed.size()) + " more";
    append(&reason, text);
    append(&remedy, words.remedy);
  }
  ProviderDefinition state{};
  state.state = ProviderState::kDegraded;
  inbox_->define(spool::kNodeProcess, DefinitionType::kProvider, state,
                 {"recording", reason, remedy});
}

}  // namespace aon::agent
