#include "plugins/mpi/library.h"

#include <gtest/gtest.h>

#include <thread>

#include "plugins/mpi/offered.h"

namespace aon::mpi {

void offer_what_the_library_has() noexcept {}  // no library is known here

const char* const kFunctionNames[kFunctionCount] = {"aon_is_nowhere"};

namespace {

// While one thread learns the datatypes, another one may make its first call. What is nowhere is
// sought among the libraries that were loaded RTLD_LOCAL, too. ThreadSanitizer finds the race.
TEST(Library, is_searched_while_a_function_is_looked_up) {
  constexpr int kRounds = 100;
  std::jthread other([] {
    for (int i = 0; i < kRounds; ++i) EXPECT_EQ(find_symbol("aon_is_nowhere"), nullptr);
  });
  for (int i = 0; i < kRounds; ++i) EXPECT_NE(resolve_function(0), nullptr);
}

}  // namespace
}  // namespace aon::mpi
