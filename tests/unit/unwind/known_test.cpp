// What is kept of the files that chains went through.
#include <gtest/gtest.h>
#include <link.h>

#include <algorithm>
#include <string>

#include "core/unwind/unwinder.h"

namespace aon::unwind {
namespace {

constexpr uint64_t kBegin = 0x10000000;  ///< where the code is said to lie

/// The code of the C library.
Mapping library_code() {
  Mapping code;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        const std::string path = info->dlpi_name;
        if (path.find("/libc.so.6") == std::string::npos) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
          auto* found = static_cast<Mapping*>(to);
          found->begin = kBegin;
          found->end = kBegin + part.p_filesz;
          found->file_offset = part.p_offset;
          found->path = path;
        }
        return 1;
      },
      &code);
  return code;
}

/// Each spelling of a path is a file of its own here.
TEST(Unwinder, keeps_no_more_of_many_files_than_there_is_room_for) {
  Mapping code = library_code();
  ASSERT_NE(code.path, "");
  const uint8_t nothing = 0;
  const StackCopy stack{0x1000, &nothing, 0};
  Unwinder unwinder;
  size_t most = 0;
  for (int file = 0; file < 8; ++file) {
    for (uint64_t address = code.begin; address < code.end; address += 8) {
      Registers registers;
      registers.set(kIp, address);
      registers.set(kSp, 0x1000);
      unwinder.unwind(registers, stack, {&code, 1}, 1);
    }
    most = std::max(most, unwinder.known_count());
    ASSERT_LE(most, Unwinder::kMaxKnown) << file;
    code.path.insert(0, "/");
  }
  EXPECT_GT(most, Unwinder::kMaxKnown / 8);
}

}  // namespace
}  // namespace aon::unwind
