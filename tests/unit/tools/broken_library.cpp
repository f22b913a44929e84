// A library that ends the process which loads it.
#include <csignal>

namespace {
[[gnu::constructor]] void end() { raise(SIGSEGV); }
}  // namespace
