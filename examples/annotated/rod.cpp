// rod: heat in a rod, annotated in C++; see rod.c.
//
// Build:  c++ -std=c++17 -I PREFIX/include rod.cpp -o rod
#include <aon/annotate.hpp>
#include <cstdio>
#include <utility>
#include <vector>

namespace {

constexpr int kCells = 1000;
constexpr int kSteps = 20;

// Looked up once: regions that are entered often.
const aon_region_t kHalo = aon_region("halo");
const aon_region_t kCompute = aon_region("compute");
const aon_region_t kResidual = aon_region("residual");

class Rod {
 public:
  Rod() : now_(kCells + 2), next_(kCells + 2) {
    const aon::ScopedRegion setup("setup");
    for (int i = 1; i <= kCells; ++i) now_[i] = i <= kCells / 2 ? 100.0 : 0.0;
  }

  /// One step; returns the sum of squared changes.
  double advance() {
    exchange_ends();
    diffuse();
    return take_over();
  }

 private:
  void exchange_ends() {
    const aon::ScopedRegion halo(kHalo);
    now_[0] = now_[kCells];
    now_[kCells + 1] = now_[1];
  }

  void diffuse() {
    const aon::ScopedRegion compute(kCompute);
    for (int i = 1; i <= kCells; ++i) next_[i] = 0.25 * (now_[i - 1] + 2.0 * now_[i] + now_[i + 1]);
  }

  double take_over() {
    const aon::ScopedRegion residual(kResidual);
    double change = 0.0;
    for (int i = 1; i <= kCells; ++i) change += (next_[i] - now_[i]) * (next_[i] - now_[i]);
    std::swap(now_, next_);
    return change;
  }

  std::vector<double> now_;
  std::vector<double> next_;
};

}  // namespace

int main() {
  const aon_counter_t residual = aon_counter("residual", "K^2");
  Rod rod;
  double change = 0.0;
  for (int step = 0; step < kSteps; ++step) {
    const aon::ScopedStep scope(step);
    change = rod.advance();
    aon_counter_set(residual, change);
  }
  aon_mark_integer(aon_region("done"), kSteps);
  std::printf("rod: %d steps, residual %.6e\n", kSteps, change);
}
