/// Buffers as CUPTI filled them, kept for a test: AON_RECORD_FIXTURE=FOLDER (aon-run
/// --record-fixture) makes FOLDER/cupti-NODE-PID.bin. Records name kernels by address, so each name
/// goes along with its own, once, before the first buffer that has it.
///
///     file:   "AONCUPTI" | version of CUPTI u32 | 0 u32 | part | part | ...
///     part:   1 buffer, 2 name u32 | payload bytes u32 | payload | up to 7 zeros
///     name:   address u64 | text and its NUL
///
/// Thread: one.   Cost: nothing without the variable; else a write() per buffer, at most kMaxBytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace aon::cupti {

class Fixture {
 public:
  static constexpr char kMagic[8] = {'A', 'O', 'N', 'C', 'U', 'P', 'T', 'I'};
  static constexpr uint64_t kMaxBytes = 64u << 20;
  enum class Part : uint32_t { kBuffer = 1, kName = 2 };

  /// Makes the file, if one is wanted. What cannot be written ends the fixture, nothing else.
  void open_for_process(const char* folder, uint32_t version);
  bool is_open() const { return file_ >= 0; }

  /// Names of the buffer come first.
  void add_name(const char* name);
  void add_buffer(const uint8_t* bytes, size_t byte_count);

 private:
  static constexpr uint32_t kNames = 4096;  ///< a power of two; one that was pushed out comes again

  void write_part(Part part, const void* head, size_t head_bytes, const void* body,
                  size_t body_bytes);
  void close_file();

  int file_ = -1;
  uint64_t written_bytes_ = 0;
  const char* names_[kNames] = {};
};

}  // namespace aon::cupti
