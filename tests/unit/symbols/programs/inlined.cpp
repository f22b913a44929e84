// A chain of inlined functions whose lines the symbol tests know.
#include <cstdio>

namespace grid {

volatile int sink = 0;

template <class T>
__attribute__((always_inline)) inline void innermost(T value) {
  sink = sink + static_cast<int>(value);
}

__attribute__((always_inline)) inline void middle(int value) { innermost<long>(value); }

struct Solver {
  __attribute__((noinline)) void sweep(int value);
};

void Solver::sweep(int value) { middle(value); }

}  // namespace grid

int main(int argc, char**) {
  grid::Solver solver;
  solver.sweep(argc);
  std::printf("%d\n", grid::sink);
  return 0;
}
