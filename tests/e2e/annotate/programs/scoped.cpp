// RAII forms: each scope is left once, by an exception too.
#include <aon/annotate.hpp>
#include <cstdio>
#include <stdexcept>

namespace {

const aon_region_t kWork = aon_region("work");

void work(int step) {
  const aon::ScopedRegion region(kWork);
  if (step == 2) throw std::runtime_error("bad step");
}

}  // namespace

int main() {
  for (int step = 0; step < 3; ++step) {
    const aon::ScopedStep scope(step);
    const aon::ScopedRegion named("named");
    try {
      work(step);
    } catch (const std::exception&) {
      aon_mark_name("caught");
    }
  }
  std::puts("done");
}
