/// Calls from Fortran. A wrapper gets the address of every argument, then that of ierror, then the
/// lengths of the character arguments: one word each. It keeps them as they are for the real
/// function, and looks at C forms of those that a record needs: the bodies are the C wrappers' own.
///
///     mpi_send_  mpi_send__  mpi_send  MPI_SEND    kPlain: mpif.h and `use mpi`, one function
///     mpi_send_f08_                                kF08: `use mpi_f08`; ierror may be absent
///     mpi_alloc_mem_cptr_  mpi_wtime_f90_ ...      kVariant: a second form in `use mpi`
///     mpi_comm_get_attr_ ...                       kOwnPlain: as kPlain; calls no C function
///     mpi_type_size_f08_large_ mpi_type_size_c_f08_ ...   kLarge: large counts, without buffers
///
/// What is forwarded goes to the next function of the same family, whose spellings are one function
/// in every library: the first spelling that is found. Where the library's own Fortran calls its C
/// functions by their MPI_ names, the C wrappers see the call and these only forward; so they do
/// where INTEGER has not four bytes.
///
/// A request that Fortran has begun is known by its INTEGER (requests.h). Communicators, basic
/// types and requests that are always there have their C handles in tables; all other handles are
/// converted by the library.
///
/// Thread: any.   Signal: as MPI.   Cost: that of the C wrapper, 3 to 5 ns per handle converted.
#pragma once

#include <aon/definition.h>
#include <string.h>

#include <utility>

#include "mpi/call.h"
#include "mpi/communicators.h"
#include "mpi/handles.h"
#include "mpi/library.h"
#include "mpi/requests.h"

namespace aon::mpi {

using Word = void*;  ///< an argument: an address, or the length of a string
using FortranFunction = int (*)(...);

enum class Family : uint32_t { kPlain, kF08, kVariant, kOwnPlain, kLarge };
constexpr uint32_t kFamilies = 5;

/// The real functions by family and site; null until their first call.
[[gnu::visibility("hidden")]] extern std::atomic<void*> fortran_functions[kFamilies]
                                                                         [kFunctionCount];

/// Those of them whose calls are recorded here, else null: what most calls ask for.
[[gnu::visibility("hidden")]] extern std::atomic<void*> recorded_functions[kFamilies]
                                                                          [kFunctionCount];

/// True once it is known that calls of the family must be recorded here, not by the C wrappers.
[[gnu::visibility("hidden")]] extern std::atomic<bool> fortran_is_recorded[kFamilies];

/// Looks the real function up; one that does nothing when there is none.
void* resolve_fortran(Family family, uint32_t site) noexcept;

/// After MPI_Init: the handles that are converted without a call. False: INTEGER is larger than we
/// know, calls from Fortran are only forwarded.
bool learn_fortran() noexcept;
void learn_fortran_datatype(Handle datatype) noexcept;

[[gnu::always_inline]] inline void* known_fortran(Family family, uint32_t site) {
  return fortran_functions[static_cast<uint32_t>(family)][site].load(std::memory_order_relaxed);
}

inline void* real_fortran(Family family, uint32_t site) {
  void* function = known_fortran(family, site);
  return AON_LIKELY(function != nullptr) ? function : resolve_fortran(family, site);
}

[[gnu::always_inline]] inline bool is_recorded(Family family) {
  return fortran_is_recorded[static_cast<uint32_t>(family)].load(std::memory_order_relaxed);
}

// What a body looks at -----------------------------------------------------------------------

[[gnu::always_inline]] inline int integer_at(const void* word) {
  int32_t value;
  memcpy(&value, word, sizeof value);
  return value;
}

[[gnu::always_inline]] inline int64_t large_at(const void* word) {
  int64_t value;
  memcpy(&value, word, sizeof value);
  return value;
}

constexpr int32_t kFortranTypes = 128;
/// MPI_COMM_WORLD as an INTEGER; no INTEGER before it is known
[[gnu::visibility("hidden")]] extern int64_t fortran_world;
/// Basic types of a library that numbers them from 0.
[[gnu::visibility("hidden")]] extern Handle fortran_types[kFortranTypes];
constexpr uint32_t kFortranRequests = 8;
/// MPI_REQUEST_NULL and the shared ones, alike; all that are always there stand in the table.
[[gnu::visibility("hidden")]] extern Handle fortran_requests[kFortranRequests];
[[gnu::visibility("hidden")]] extern bool fortran_requests_are_known;

Handle communicator_from_fortran(const void* fortran_handle) noexcept;
Handle datatype_from_fortran(const void* fortran_handle) noexcept;
Handle message_from_fortran(const void* fortran_handle) noexcept;
Handle window_from_fortran(const void* fortran_handle) noexcept;
Handle group_from_fortran(const void* fortran_handle) noexcept;
Handle operation_from_fortran(const void* fortran_handle) noexcept;
Handle file_from_fortran(const void* fortran_handle) noexcept;
Handle session_from_fortran(const void* fortran_handle) noexcept;

/// A request that may be C's, or where handles are integers.
Handle find_request_of_fortran(const void* fortran_handle) noexcept;

/// Of a request that is always there its C handle, else 0.
inline Handle lasting_request(int32_t number) {
  const uint32_t at = static_cast<uint32_t>(number);
  return at < kFortranRequests ? fortran_requests[at] : 0;
}
inline Handle request_from_fortran(const void* fortran_handle) noexcept {
  const Handle lasting = lasting_request(integer_at(fortran_handle));
  return lasting != 0 ? lasting : find_request_of_fortran(fortran_handle);
}
/// The same of one that the call itself has begun or prepared.
inline Handle begun_request_from_fortran(const void* fortran_handle) noexcept {
  const int32_t number = integer_at(fortran_handle);
  const Handle lasting = lasting_request(number);
  if (lasting != 0) return lasting;
  return AON_LIKELY(fortran_requests_are_known) ? request_of_fortran(number)
                                                : find_request_of_fortran(fortran_handle);
}

[[gnu::always_inline]] inline Handle file_at(const void* word) { return file_from_fortran(word); }

[[gnu::always_inline]] inline Handle communicator_at(const void* word) {
  if (AON_LIKELY(integer_at(word) == fortran_world)) return abi.comm_world;
  return communicator_from_fortran(word);
}

[[gnu::always_inline]] inline Handle datatype_at(const void* word) {
  const uint32_t number = static_cast<uint32_t>(integer_at(word));
  if (AON_LIKELY(number < kFortranTypes && fortran_types[number] != 0)) {
    return fortran_types[number];
  }
  return datatype_from_fortran(word);
}

/// Arguments that a body looks at where it needs them: until then, and after the call, they are the
/// address that the call has anyway, and take no register and no place on the stack.
struct FortranInteger {
  // NOLINTNEXTLINE(google-explicit-constructor)
  [[gnu::always_inline]] operator int() const { return integer_at(at); }
  const void* at;
};
struct FortranDatatype {
  // NOLINTNEXTLINE(google-explicit-constructor)
  [[gnu::always_inline]] operator Handle() const { return datatype_at(at); }
  const void* at;
};
struct FortranCommunicator {
  // NOLINTNEXTLINE(google-explicit-constructor)
  [[gnu::always_inline]] operator Handle() const { return communicator_at(at); }
  const void* at;
};
[[gnu::always_inline]] inline Communicator* find_communicator(FortranCommunicator comm) {
  if (AON_LIKELY(integer_at(comm.at) == fortran_world)) return &world;
  return find_communicator(communicator_from_fortran(comm.at));
}

/// Whether `word` is `address`. What stands on the stack does not even lie near it. A null pointer,
/// as of an array that is not allocated, is none.
[[gnu::always_inline]] inline bool is_special(const SpecialAddress& address, const void* word) {
  const bool is_near = reinterpret_cast<uint64_t>(word) - address.lowest <= address.range;
  if (AON_LIKELY(!is_near) || word == nullptr) return false;
  static_assert(kSpellings == 4);
  const auto& spellings = address.spellings;  // a loop would stay one
  return word == spellings[0] || word == spellings[1] || word == spellings[2] ||
         word == spellings[3];
}

/// A buffer as C has it: only MPI_IN_PLACE is another address.
[[gnu::always_inline]] inline const void* buffer_at(const void* word) {
  return is_special(abi.fortran.in_place, word) ? abi.in_place : word;
}

[[gnu::always_inline]] inline Status* status_at(Word word) {
  const bool is_ignored = is_special(abi.fortran.status_ignore, word);
  return is_ignored ? abi.status_ignore : static_cast<Status*>(word);
}

[[gnu::always_inline]] inline Status* statuses_at(Word word) {
  const bool is_ignored = is_special(abi.fortran.statuses_ignore, word);
  return is_ignored ? abi.statuses_ignore : static_cast<Status*>(word);
}

/// Index of the first request in what Waitany and its like return: 1, but MPICH 4.0's mpi_f08
/// counts from 0 as C does.
extern int fortran_first_index;

/// An index that MPI returns; from 0 here.
struct FortranIndex {
  explicit FortranIndex(const void* word) : at(word) {}
  int operator*() const {
    const int index = integer_at(at);
    return index == abi.undefined ? index : index - fortran_first_index;
  }
  const void* at;
};
[[gnu::always_inline]] inline int value_or(const FortranIndex& index, int) { return *index; }

/// A character argument as the libraries hand it on: without leading and trailing blanks, as much
/// of it as a definition has room for. Of its length only the low half is looked at: older
/// compilers pass an int.
class FortranText {
 public:
  FortranText(const void* word, Word length) noexcept;
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator const char*() const { return text_; }

 private:
  static constexpr uint32_t kMaxBytes = kMaxDefinitionBytes;
  char text_[kMaxBytes];
};

// Calling the real function ------------------------------------------------------------------

template <size_t... kIndex>
[[gnu::always_inline]] inline int call_words(void* function, const Word* words,
                                             std::index_sequence<kIndex...>) {
  using Function = int (*)(decltype(static_cast<void>(kIndex), Word{})...);
  return reinterpret_cast<Function>(function)(words[kIndex]...);
}

/// The same for a number of words that is known at run time.
constexpr uint32_t kMaxWordsOfCall = 16;
int call_words(void* function, const Word* words, uint32_t count);

constexpr uint32_t kNoWord = 0xffffffffu;

/// Memory for an array of statuses, unless it is C's way to ignore it.
struct Statuses {
  bool are_ignored() const { return first == abi.status_ignore || first == abi.statuses_ignore; }
  Status* first;
};

/// The real function with the arguments of this call; `kStatus` is the status or the statuses.
/// Returns what it puts into ierror.
template <uint32_t kCount, uint32_t kError, uint32_t kStatus = kNoWord>
class FortranCall {
 public:
  FortranCall(void* function, const Word* words) : function_(function), words_(words) {}

  [[gnu::always_inline]] int operator()() const {
    return call<kNoWord>(nullptr, std::make_index_sequence<kCount>());
  }
  /// With other memory for the status, or the statuses.
  [[gnu::always_inline]] int operator()(Status* told) const {
    return call<kStatus>(told, std::make_index_sequence<kCount>());
  }
  [[gnu::always_inline]] int operator()(Statuses told) const {
    Word statuses = told.are_ignored() ? words_[kStatus] : told.first;
    return call<kStatus>(statuses, std::make_index_sequence<kCount>());
  }

 private:
  /// From the words into registers: a copy of all of them is made in larger pieces than they were
  /// stored in, and waits for the stores, 3 ns.
  template <uint32_t kReplaced, size_t... kIndex>
  [[gnu::always_inline]] int call(Word by, std::index_sequence<kIndex...>) const {
    using Function = int (*)(decltype(static_cast<void>(kIndex), Word{})...);
    int own_error;
    Word error = words_[kError];
    if (AON_UNLIKELY(error == nullptr)) {
      own_error = kSuccess;
      error = &own_error;
      asm("" : "+r"(error));  // or the others pay for a choice without a branch
    }
    reinterpret_cast<Function>(function_)((kIndex == kReplaced ? by
                                           : kIndex == kError  ? error
                                                               : words_[kIndex])...);
    return integer_at(error);
  }

  void* function_;
  const Word* words_;
};

/// Around a real call that is counted and opens no span: what it calls itself is inside it, and is
/// not counted again.
class Inside {
 public:
  [[gnu::always_inline]] Inside() : w_(writer()) {
    w_->span_frame[0] = frame_mark();
    compiler_barrier();
    w_->span_depth |= 1;
    compiler_barrier();
  }
  [[gnu::always_inline]] ~Inside() {
    compiler_barrier();
    w_->span_depth &= kReadsCounters;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Writer* w_;
};

/// FortranCall of a call that is counted only.
template <class Call>
class CountedCall {
 public:
  CountedCall(void* function, const Word* words) : call_(function, words) {}
  template <class... Told>
  [[gnu::always_inline]] int operator()(Told... told) const {
    const Inside inside;
    return call_(told...);
  }

 private:
  Call call_;
};

// What a wrapper begins with -----------------------------------------------------------------

/// The body of a call: recorded, or looked at when it is not timed.
using FortranBody = int (*)(const Word* words, void* function, uint32_t weight);

/// The bodies of a row; null: none.
struct FortranBodies {
  FortranBody record;
  FortranBody look;  ///< what is not timed
  FortranBody pass;  ///< while paused, as long as requests live (requests_outlive_pause)
};

/// Of a call whose plan is not simple; `plan` as plan_fortran() gave it.
int start_fortran(const Site& site, Family family, const Word* words, uint32_t word_count,
                  const FortranBodies& bodies, uint32_t plan) noexcept;
int start_fortran_span(const Site& site, Family family, const Word* words, uint32_t word_count,
                       uint32_t error, uint32_t plan) noexcept;
double start_fortran_clock(const Site& site, Family family) noexcept;

/// plan_call() of a function that is known and records; kUntimed: it was counted.
template <Family kFamily>
[[gnu::always_inline]] inline uint32_t plan_fortran(const Site& site, const void* function) {
  if (AON_UNLIKELY(function == nullptr)) return kFirstPlan;
  if (AON_UNLIKELY(!is_recorded(kFamily))) return kForward;
  return plan_call(site, kUntimed);
}

/// `kIsPoll`: most calls are not timed.
template <Family kFamily, FortranBody kRecord, bool kIsPoll, class... Words>
[[gnu::always_inline]] inline int enter_fortran(const Site& site, const FortranBodies& bodies,
                                                Words... arguments) {
  void* recorded =
      recorded_functions[static_cast<uint32_t>(kFamily)][site.id].load(std::memory_order_relaxed);
  if (!kIsPoll && AON_LIKELY(recorded != nullptr && is_in_full(site))) {
    const Word words[] = {arguments...};  // of its own: nobody else sees it, it is no memory
    return kRecord(words, recorded, 1);
  }
  void* function = known_fortran(kFamily, site.id);
  const uint32_t plan = plan_fortran<kFamily>(site, function);
  if (plan == kForward && !(bodies.pass != nullptr && is_passing_requests())) {
    return reinterpret_cast<int (*)(Words...)>(function)(arguments...);
  }
  const Word words[] = {arguments...};
  if (kIsPoll && plan == 1) return kRecord(words, function, 1);
  if (plan == kUntimed && bodies.look != nullptr) return bodies.look(words, function, 0);
  return start_fortran(site, kFamily, words, sizeof...(Words), bodies, plan);
}

template <Family kFamily, class... Words>
[[gnu::always_inline]] inline int enter_fortran_span(const Site& site, uint32_t error,
                                                     Words... arguments) {
  void* function = known_fortran(kFamily, site.id);
  const auto real = reinterpret_cast<int (*)(Words...)>(function);
  const uint32_t plan = plan_fortran<kFamily>(site, function);
  if (AON_LIKELY(plan == kUntimed)) {
    const Inside inside;
    return real(arguments...);
  }
  if (plan == kForward) return real(arguments...);
  const Word words[] = {arguments...};
  return start_fortran_span(site, kFamily, words, sizeof...(Words), error, plan);
}

/// Of a call whose body decides itself, in every mode.
template <Family kFamily, class... Words>
[[gnu::always_inline]] inline int enter_fortran_always(const Site& site, FortranBody record,
                                                       Words... arguments) {
  void* function = real_fortran(kFamily, site.id);
  const Word words[] = {arguments...};
  if (AON_UNLIKELY(!is_recorded(kFamily))) return call_words(function, words, sizeof...(Words));
  return record(words, function, 1);
}

}  // namespace aon::mpi

/// Another spelling of a Fortran function; all others.
// NOLINTBEGIN(bugprone-macro-parentheses): names
#define AON_FORTRAN_SPELLING(usual, other) \
  extern "C" AON_EXPORT decltype(usual) other __attribute__((alias(#usual)))
#define AON_FORTRAN_SPELLINGS(usual, two, none, upper) \
  AON_FORTRAN_SPELLING(usual, two);                    \
  AON_FORTRAN_SPELLING(usual, none);                   \
  AON_FORTRAN_SPELLING(usual, upper)
// NOLINTEND(bugprone-macro-parentheses)
