#include "mpi/provider.h"

#include <aon/definition.h>
#include <aon/writer.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "mpi/callbacks.h"
#include "mpi/communicators.h"
#include "mpi/groups.h"
#include "mpi/library.h"
#include "mpi/requests.h"
#include "mpi/state.h"

namespace aon::mpi {

ProviderNotes provider_notes;

namespace {

using Count = unsigned long long;

constexpr const char* kPastUs =
    "MPI was initialised by a call that went past libaon-mpi.so, and such calls are not recorded: "
    "the program looks the functions up in MPI's own library (dlsym(), RTLD_DEEPBIND), or calls "
    "them by PMPI names";
constexpr const char* kPastUsRemedy =
    "call them by MPI_ names, or look them up by dlsym(RTLD_DEFAULT, name)";

/// Appends behind what is there, as far as there is room.
[[gnu::format(printf, 3, 0)]] void append(char* text, size_t capacity, const char* format,
                                          va_list values) {
  size_t length = strlen(text);
  if (length != 0) length += static_cast<size_t>(snprintf(text + length, capacity - length, "; "));
  if (length < capacity) vsnprintf(text + length, capacity - length, format, values);
}

/// Reasons and remedies, one after the other.
struct Shortcomings {
  char reasons[700];
  char remedies[300];

  [[gnu::format(printf, 2, 3)]] void add_reason(const char* format, ...) {
    va_list values;
    va_start(values, format);
    append(reasons, sizeof reasons, format, values);
    va_end(values);
  }
  [[gnu::format(printf, 2, 3)]] void add_remedy(const char* format, ...) {
    va_list values;
    va_start(values, format);
    append(remedies, sizeof remedies, format, values);
    va_end(values);
  }
};

void define(ProviderState provider_state, const char* reason, const char* remedy) {
  ProviderDefinition provider = {};
  provider.state = provider_state;
  char text[sizeof(Shortcomings) + 8];  // three strings: name, reason, remedy
  const int size = snprintf(text, sizeof text, "mpi%c%s%c%s", '\0', reason, '\0', remedy);
  aon_define(static_cast<uint32_t>(DefinitionType::kProvider), &provider, sizeof provider, text,
             static_cast<uint32_t>(size) + 1);
}

void add_notes(Shortcomings* all) {
  const ProviderNotes& notes = provider_notes;
  if (notes.has_no_fortran) {
    all->add_reason(
        "the library is made for a Fortran INTEGER of more than 4 bytes: calls from Fortran are "
        "not recorded");
    all->add_remedy("use the library for 4 bytes");
  } else if (const char* caveat = library_backend()->caveat;
             caveat != nullptr && find_behind("mpi_init_") != nullptr) {
    all->add_reason("%s", caveat);
    all->add_remedy("%s", caveat + strlen(caveat) + 1);
  }
  if (notes.has_unnamed_world) {
    all->add_reason(
        "the library does not name the processes of a session: no peers, bytes and communicators");
    all->add_remedy("call MPI_Init");
  }
  if (notes.is_begun_past_us) {
    all->add_reason("%s", kPastUs);
    all->add_remedy("%s", kPastUsRemedy);
  }
  if (notes.front_count != 0) {
    all->add_reason(
        "the program, or a library in front, has %u MPI functions of its own (%s): what they call "
        "by PMPI names is not recorded",
        notes.front_count, notes.front_name);
    all->add_remedy("load the tool by LD_PRELOAD instead");
  }
}

/// True: something does not fit, or cannot be told apart.
bool add_counts(Shortcomings* all, bool is_end) {
  const char* so_far = is_end ? "" : "at least ";
  const Count requests = unfollowed_requests();
  const Count sessions = provider_notes.sessions_count;
  const Count communicators = ambiguous_communicators();
  const Count inside = unrecorded_calls();
  if (requests != 0) {
    all->add_reason(
        "%s%llu requests are not followed: %llu were live at once; their completions are missing",
        so_far, requests, Count{kMaxLiveRequests});
    all->add_remedy("complete or free requests earlier");
  }
  if (sessions != 0) {
    all->add_reason("%s%llu sessions are not followed: %u were live at once", so_far, sessions,
                    kMaxSessions);
    all->add_remedy("finalize sessions earlier");
  }
  if (communicators != 0 && has_uncounted_communicators()) {
    all->add_reason(
        "%s%llu communicators cannot be told from others: MPI_Comm_create_group and its like were "
        "called with about %u lists of members and tags or more: what is sent there is not matched",
        so_far, communicators, kMaxMemberLists);
    all->add_remedy("use a tag again once its communicator is made");
  } else if (communicators != 0) {
    all->add_reason(
        "%s%llu communicators that were made unseen (by PMPI names) have the members of others: "
        "what is sent there is not matched",
        so_far, communicators);
    all->add_remedy("make them by MPI_ names");
  }
  if (inside != 0) {
    all->add_reason(
        "%s%llu sends, receives and collectives were called inside other MPI calls, by callbacks, "
        "and are not recorded: later messages may be matched with others' partners",
        so_far, inside);
    all->add_remedy("communicate outside of callbacks");
  }
  return requests + sessions + communicators + inside != 0;
}

}  // namespace

void tell_unknown_library() {
  const char* soname = library_soname();
  const bool is_standard = strncmp(soname, "libmpi_abi.so", 13) == 0;
  char reason[256];
  snprintf(reason, sizeof reason, "the MPI library in use, %.96s, %s",
           soname[0] != '\0' ? soname : "of no name",
           is_standard ? "does not have version 1 of MPI's ABI: its calls are not recorded"
                       : "is not known: its calls are not recorded");
  define(ProviderState::kOff, reason,
         "use Open MPI 2 to 5 (tested: 4), MPICH 3.1 or later (tested: 4), or one of its ABI");
}

void tell_provider(bool is_end) {
  Shortcomings all = {};
  add_notes(&all);
  const bool has_counts = add_counts(&all, is_end);
  if (is_end && !has_counts) return;
  const bool is_whole = all.reasons[0] == '\0';
  define(is_whole ? ProviderState::kOn : ProviderState::kDegraded, all.reasons, all.remedies);
}

}  // namespace aon::mpi
