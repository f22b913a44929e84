#include "core/agent/recording_notes.h"

#include <aon/definition.h>

#include <algorithm>
#include <cstring>
#include <functional>

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

RecordingNotes::RecordingNotes(Inbox* inbox, KeptNotes* kept) : inbox_(inbox), kept_(kept) {
  // Its bounds hold whatever the worker before left there.
  const uint32_t names = std::min(kept->name_count.load(std::memory_order_acquire),
                                  KeptNotes::kMostNames);  // pairs with agent:notes
  for (uint32_t i = 0; i < names; ++i)
    notes_[static_cast<RecordingNote>(kept->names[i].note)].names.emplace_back(
        kept->names[i].program, strnlen(kept->names[i].program, KeptNotes::kNameBytes));
  const uint32_t unnamed = std::min(kept->unnamed_count.load(std::memory_order_acquire),
                                    KeptNotes::kMostUnnamed);  // pairs with agent:notes
  for (uint32_t i = 0; i < unnamed; ++i)
    notes_[static_cast<RecordingNote>(kept->unnamed[i].note)].unnamed.insert(kept->unnamed[i].hash);
}

void RecordingNotes::keep_name(RecordingNote note, const std::string& program) {
  const uint32_t index = kept_->name_count.load(std::memory_order_relaxed);
  if (index >= KeptNotes::kMostNames) return;
  KeptNotes::Name& name = kept_->names[index];
  name.note = static_cast<uint32_t>(note);
  name.program[program.copy(name.program, sizeof(name.program) - 1)] = '\0';
  kept_->name_count.store(index + 1, std::memory_order_release);  // pairs with agent:notes
}

void RecordingNotes::keep_unnamed(RecordingNote note, uint64_t hash) {
  const uint32_t index = kept_->unnamed_count.load(std::memory_order_relaxed);
  if (index >= KeptNotes::kMostUnnamed) return;
  kept_->unnamed[index] = {static_cast<uint32_t>(note), 0, hash};
  kept_->unnamed_count.store(index + 1, std::memory_order_release);  // pairs with agent:notes
}

void RecordingNotes::tell_again() {
  if (!notes_.empty()) tell();
}

void RecordingNotes::add(RecordingNote note, const std::string& program) {
  const std::string name = program.substr(0, KeptNotes::kNameBytes - 1);
  const bool is_first = notes_.count(note) == 0;
  Programs& told = notes_[note];
  const bool is_named = std::find(told.names.begin(), told.names.end(), name) != told.names.end();
  if (!is_first && is_named) return;
  if (told.names.size() < kMostNamed) {
    told.names.push_back(name);
    keep_name(note, name);
  } else {
    const uint64_t hash = std::hash<std::string>()(name);
    if (told.unnamed.size() >= kMostKnown || !told.unnamed.insert(hash).second) return;
    keep_unnamed(note, hash);
  }
  tell();
}

void RecordingNotes::tell() {
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
