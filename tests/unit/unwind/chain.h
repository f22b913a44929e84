/// A known call chain, in code without frame pointers. Thread: any.
#pragma once

namespace aon::unwind::test {

/// Calls itself `depth` times with frames of different sizes, then `last`.
int descend(int depth, void (*last)());

}  // namespace aon::unwind::test
