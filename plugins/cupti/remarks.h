/// What the ledger has to say of the provider, composed of remarks that do not hide each other.
/// Thread: one at a time.   Cost: 12 KiB; no allocation.
#pragma once

#include <aon/definition.h>

#include <cstddef>

namespace aon::cupti {

/// In the order in which they are told.
enum class Remark : uint8_t {
  kStart = 0,  ///< why it is off, or what cannot be recorded
  kLibrary,    ///< it is not the one that AON_CUPTI_LIB says
  kSettings,   ///< values of AON_CUPTI_... that are none
  kVersion,    ///< what this version of CUPTI does not do
  kSilence,    ///< CUPTI told of no work though there was some
  kEnd,        ///< a fatal error, or a program that did not wait
  kPause,
  kStreams,  ///< some share a timeline
  kNames,    ///< some kernels share a name
  kIds,      ///< external correlation ids are of no call
  kDetail,   ///< less was recorded, for the cost
  kCost,     ///< of all, by estimate
  kMissing,
  kKept,    ///< CUPTI does not hand records over
  kFailed,  ///< kinds could not be switched on again
  kUnread,  ///< until the program has ended well
  kFlush,   ///< one was left out
  kRelease,
};
constexpr uint32_t kRemarkCount = 18;

class Remarks {
 public:
  static constexpr size_t kMaxText = 1600;  ///< of all reasons, or of all remedies

  /// Takes the place of the same remark before it; kOn with "" takes it back.
  void set(Remark remark, ProviderState state, const char* reason, const char* remedy);

  /// The worst: off, then degraded.
  ProviderState state() const;

  /// Into `text`, of kMaxText bytes at least; each remedy once. Returns the length.
  size_t write_reasons(char* text) const;
  size_t write_remedies(char* text) const;

 private:
  static constexpr size_t kMaxReason = 400;
  static constexpr size_t kMaxRemedy = 240;
  struct Entry {
    ProviderState state = ProviderState::kOn;
    char reason[kMaxReason] = {};
    char remedy[kMaxRemedy] = {};
  };
  static_assert(kRemarkCount * (kMaxReason + 2) > kMaxText, "else nothing would have to be cut");

  Entry entries_[kRemarkCount];
};

}  // namespace aon::cupti
