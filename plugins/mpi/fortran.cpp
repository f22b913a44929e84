#include "mpi/fortran.h"

#include <ctype.h>
#include <errno.h>

#include "mpi/state.h"

namespace aon::mpi {

std::atomic<void*> fortran_functions[kFamilies][kFunctionCount];
std::atomic<void*> recorded_functions[kFamilies][kFunctionCount];
std::atomic<bool> fortran_is_recorded[kFamilies];
int64_t fortran_world = INT64_MIN;
Handle fortran_types[kFortranTypes];
Handle fortran_requests[kFortranRequests];
bool fortran_requests_are_known;
int fortran_first_index = 1;

namespace {

constexpr uint32_t kNameBytes = 128;

int missing_function(...) { return 0; }

/// `MPI_Comm_rank` and a suffix -> `mpi_comm_rank_`.
void* find_spelling(const char* c_name, const char* suffix, bool is_upper) {
  char name[kNameBytes];
  uint32_t length = 0;
  for (const char* part : {c_name, suffix}) {
    for (; *part != '\0' && length < kNameBytes - 1; ++part) {
      const int letter = static_cast<unsigned char>(*part);
      name[length++] = static_cast<char>(is_upper ? toupper(letter) : tolower(letter));
    }
  }
  name[length] = '\0';
  return find_behind(name);
}

void* find_any_spelling(const char* c_name, const char* form) {
  for (const char* end : {"_", "__", ""}) {
    char suffix[8];
    strcpy(suffix, form);
    strcat(suffix, end);
    if (void* found = find_spelling(c_name, suffix, false)) return found;
  }
  return find_spelling(c_name, form, true);
}

void* find_fortran(Family family, const char* c_name) {
  if (family == Family::kF08) return find_spelling(c_name, "_f08_", false);
  if (family == Family::kLarge) {
    void* found = find_spelling(c_name, "_f08_large_", false);
    return found != nullptr ? found : find_spelling(c_name, "_c_f08_", false);
  }
  if (family == Family::kPlain || family == Family::kOwnPlain) return find_any_spelling(c_name, "");
  void* with_pointer = find_any_spelling(c_name, "_cptr");
  return with_pointer != nullptr ? with_pointer : find_any_spelling(c_name, "_f90");
}

/// An INTEGER that is no handle becomes a null pointer in some libraries, which they refuse as an
/// argument: `none` instead.
Handle convert(Handle (*from_fortran)(int), const void* fortran_handle, Handle none) {
  const int number = integer_at(fortran_handle);
  if (abi.handle_bytes == sizeof number) return static_cast<uint32_t>(number);
  if (from_fortran == nullptr || !mpi_is_usable()) return none;
  const Handle handle = from_fortran(number);
  return handle != 0 ? handle : none;
}

void decide_who_records() {
  const bool is_known = library_is_known() && abi.fortran.is_known;
  const bool is_plain_recorded = is_known && !abi.fortran.plain_calls_c;
  const auto set = [](Family family, bool is_recorded) {
    const auto row = static_cast<uint32_t>(family);
    fortran_is_recorded[row].store(is_recorded, std::memory_order_relaxed);
    for (uint32_t site = 0; site < kFunctionCount; ++site) {
      // Whoever finds a function at this moment stores it himself.
      void* function = fortran_functions[row][site].load(std::memory_order_relaxed);
      if (is_recorded && function == nullptr) continue;
      recorded_functions[row][site].store(is_recorded ? function : nullptr,
                                          std::memory_order_relaxed);
    }
  };
  set(Family::kF08, is_known);
  set(Family::kOwnPlain, is_known);
  set(Family::kLarge, is_known);
  set(Family::kPlain, is_plain_recorded);
  set(Family::kVariant, is_plain_recorded);
}

/// Asks mpi_f08 itself (its profiling name), about a receive from MPI_PROC_NULL, complete at once.
void learn_first_index() {
  using Testany = void (*)(const int*, void*, int*, int*, void*, int*);
  const auto testany = reinterpret_cast<Testany>(find_behind("pmpir_testany_f08_"));
  uint64_t request = 0;
  if (testany == nullptr || queries.irecv == nullptr || abi.fortran.byte == 0) return;
  if (queries.irecv(nullptr, 0, abi.fortran.byte, abi.proc_null, 0, abi.comm_self, &request) !=
      kSuccess) {
    return;
  }
  OwnStatus status;
  const int count = 1;
  int index = abi.undefined;
  int flag = 0;
  int error = kSuccess;
  testany(&count, &request, &index, &flag, status.get(), &error);
  if (error == kSuccess && flag != 0 && (index == 0 || index == 1)) fortran_first_index = index;
}

void learn_requests() {
  if (!abi.fortran.is_known || abi.handle_bytes == 4 || queries.request_c2f == nullptr ||
      queries.request_f2c == nullptr) {
    return;
  }
  const Handle last = abi.request_shared + abi.request_shared_size - 1;
  const Handle lasting[] = {abi.request_null, abi.request_shared, last};
  for (uint32_t i = 0; i < (abi.request_shared_size != 0 ? 3 : 1); ++i) {
    const auto number = static_cast<uint32_t>(queries.request_c2f(lasting[i]));
    if (number >= kFortranRequests) return;
    fortran_requests[number] = lasting[i];
  }
  fortran_requests_are_known = true;
}

int record_span(const Site& site, Writer* w, uint32_t weight, const Word* words, void* function,
                uint32_t word_count, uint32_t error) {
  int own_error = kSuccess;
  Word own_words[kMaxWordsOfCall];
  memcpy(own_words, words, word_count * sizeof(Word));
  if (own_words[error] == nullptr) own_words[error] = &own_error;
  OpenCall call = begin_call(w, site.id);
  call_words(function, own_words, word_count);
  const int result = integer_at(own_words[error]);
  finish_span(call, failed(result), weight);
  return result;
}

}  // namespace

void* resolve_fortran(Family family, uint32_t site) noexcept {
  const int saved_errno = errno;
  void* found = find_fortran(family, kFunctionNames[site]);
  if (found != nullptr) {
    detect_library();
    fortran_functions[static_cast<uint32_t>(family)][site].store(found, std::memory_order_relaxed);
    decide_who_records();
  }
  errno = saved_errno;
  return found != nullptr ? found : reinterpret_cast<void*>(&missing_function);
}

bool learn_fortran() noexcept {
  int integer_bytes = 0;
  if (abi.fortran.integer == 0 ||
      queries.type_size(abi.fortran.integer, &integer_bytes) != kSuccess || integer_bytes != 4) {
    abi.fortran.is_known = false;
  }
  decide_who_records();
  if (abi.fortran.plain_calls_c) learn_first_index();
  learn_requests();
  if (abi.handle_bytes == 4) {
    fortran_world = static_cast<int32_t>(abi.comm_world);
  } else if (queries.comm_c2f != nullptr) {
    fortran_world = queries.comm_c2f(abi.comm_world);
  }
  return integer_bytes <= 4;
}

void learn_fortran_datatype(Handle datatype) noexcept {
  if (abi.handle_bytes == 4 || queries.type_c2f == nullptr) return;
  const uint32_t number = static_cast<uint32_t>(queries.type_c2f(datatype));
  if (number < kFortranTypes) fortran_types[number] = datatype;
}

Handle communicator_from_fortran(const void* fortran_handle) noexcept {
  const auto number = static_cast<uint32_t>(integer_at(fortran_handle));
  if (number >= kFortranCommunicators) {
    return convert(queries.comm_f2c, fortran_handle, abi.comm_null);
  }
  std::atomic<Handle>& place = fortran_communicators[number];
  const Handle known = place.load(std::memory_order_relaxed);
  if (AON_LIKELY(known != 0)) return known;
  const Handle handle = convert(queries.comm_f2c, fortran_handle, abi.comm_null);
  if (find_communicator(handle)->id != 0) place.store(handle, std::memory_order_relaxed);
  return handle;
}
Handle datatype_from_fortran(const void* fortran_handle) noexcept {
  return convert(queries.type_f2c, fortran_handle, abi.datatype_null);
}
Handle find_request_of_fortran(const void* fortran_handle) noexcept {
  const Handle key = request_of_fortran(integer_at(fortran_handle));
  const bool is_known = fortran_requests_are_known && (!has_requests_of_c() || knows_request(key));
  return is_known ? key : convert(queries.request_f2c, fortran_handle, abi.request_null);
}
Handle message_from_fortran(const void* fortran_handle) noexcept {
  return convert(queries.message_f2c, fortran_handle, abi.message_null);
}
Handle window_from_fortran(const void* fortran_handle) noexcept {
  return convert(queries.window_f2c, fortran_handle, abi.window_null);
}
Handle group_from_fortran(const void* fortran_handle) noexcept {
  return convert(queries.group_f2c, fortran_handle, abi.group_null);
}
Handle operation_from_fortran(const void* fortran_handle) noexcept {
  return convert(queries.operation_f2c, fortran_handle, 0);
}

Handle file_from_fortran(const void* fortran_handle) noexcept {
  if (queries.file_f2c == nullptr || !mpi_is_usable()) return 0;
  return queries.file_f2c(integer_at(fortran_handle));
}

/// A session is there before MPI is usable.
Handle session_from_fortran(const void* fortran_handle) noexcept {
  const int number = integer_at(fortran_handle);
  if (abi.handle_bytes == sizeof number) return static_cast<uint32_t>(number);
  return queries.session_f2c != nullptr ? queries.session_f2c(number) : 0;
}

FortranText::FortranText(const void* word, Word length) noexcept {
  uint32_t byte_count = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(length));
  const char* text = static_cast<const char*>(word);
  for (; byte_count > 0 && *text == ' '; ++text) --byte_count;
  while (byte_count > 0 && text[byte_count - 1] == ' ') --byte_count;
  if (byte_count >= kMaxBytes) byte_count = kMaxBytes - 1;
  memcpy(text_, text, byte_count);
  text_[byte_count] = '\0';
}

int call_words(void* function, const Word* words, uint32_t count) {
  const auto call = [=]<size_t... kCounts>(std::index_sequence<kCounts...>) {
    int result = 0;
    static_cast<void>(
        ((count == kCounts &&
          (result = call_words(function, words, std::make_index_sequence<kCounts>()), true)) ||
         ...));
    return result;
  };
  return call(std::make_index_sequence<kMaxWordsOfCall + 1>());
}

int start_fortran(const Site& site, Family family, const Word* words, uint32_t word_count,
                  const FortranBodies& bodies, uint32_t plan) noexcept {
  void* function = real_fortran(family, site.id);
  if (!is_recorded(family)) return call_words(function, words, word_count);
  // The site is C's as well, and once it is defined its polls look their function up no more.
  if (plan == kFirstPlan) real_function(site.id);
  Writer* w = writer();
  const uint32_t weight = start_plan(w, site, plan, kUntimed);
  if (weight == kForward && is_inside_call(w)) return bodies.record(words, function, 1);
  if (weight == kForward && bodies.pass != nullptr && is_passing_requests()) {
    return bodies.pass(words, function, 0);
  }
  if (weight == kForward) return call_words(function, words, word_count);
  if (weight != kUntimed) return bodies.record(words, function, weight);
  if (bodies.look != nullptr) return bodies.look(words, function, 0);
  const Inside inside;
  return call_words(function, words, word_count);
}

int start_fortran_span(const Site& site, Family family, const Word* words, uint32_t word_count,
                       uint32_t error, uint32_t plan) noexcept {
  void* function = real_fortran(family, site.id);
  if (!is_recorded(family)) return call_words(function, words, word_count);
  Writer* w = writer();
  const uint32_t weight = start_plan(w, site, plan, kUntimed);
  if (weight == kForward || (weight != kUntimed && is_inside_call(w))) {
    return call_words(function, words, word_count);
  }
  if (weight != kUntimed) {
    return record_span(site, w, weight, words, function, word_count, error);
  }
  const Inside inside;
  return call_words(function, words, word_count);
}

double start_fortran_clock(const Site& site, Family family) noexcept {
  using Clock = double (*)();
  void* function = real_fortran(family, site.id);
  if (function == reinterpret_cast<void*>(&missing_function)) return 0;
  const auto clock = reinterpret_cast<Clock>(function);
  if (!is_recorded(family)) return clock();
  Writer* w = writer();
  const uint32_t weight = start_plan(w, site, kFirstPlan, kUntimed);
  if (weight == kForward || (weight != kUntimed && is_inside_call(w))) return clock();
  if (weight == kUntimed) {
    const Inside inside;
    return clock();
  }
  OpenCall call = begin_call(w, site.id);
  const double seconds = clock();
  finish_span(call, 0, weight);
  return seconds;
}

}  // namespace aon::mpi
