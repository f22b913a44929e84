#include "tests/unit/unwind/chain.h"

namespace aon::unwind::test {

namespace {

__attribute__((noinline)) int wide(int depth, void (*last)()) {
  volatile char room[200];
  room[depth % 200] = 1;
  return descend(depth - 1, last) + room[depth % 200];
}

}  // namespace

__attribute__((noinline)) int descend(int depth, void (*last)()) {
  if (depth == 0) {
    last();
    return 1;
  }
  return (depth % 2 == 0 ? wide(depth, last) : descend(depth - 1, last)) + 1;
}

}  // namespace aon::unwind::test
