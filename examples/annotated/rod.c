/* rod: heat in a rod, annotated in C. rod.cpp, rod.f90 and rod.py are the same program in other
 * languages, with the same regions, steps, counter and mark; their archives have the same counts.
 *
 * Build:  cc -I PREFIX/include rod.c -o rod        (nothing of AON is linked)
 * Run:    aon-run ./rod                            (without aon-run the annotations do nothing)
 */
#include <aon/annotate.h>
#include <stdio.h>

enum { kCells = 1000, kSteps = 20 };

static double rod[kCells + 2];
static double next[kCells + 2];

/* The rod is a ring: each end has the other one as its neighbour. */
static void exchange_ends(void) {
  AON_REGION_BEGIN("halo");
  rod[0] = rod[kCells];
  rod[kCells + 1] = rod[1];
  AON_REGION_END("halo");
}

static void diffuse(void) {
  AON_REGION_BEGIN("compute");
  for (int i = 1; i <= kCells; ++i) next[i] = 0.25 * (rod[i - 1] + 2.0 * rod[i] + rod[i + 1]);
  AON_REGION_END("compute");
}

/* Sum of squared changes; the new temperatures become the present ones. */
static double take_over(void) {
  double change = 0.0;
  AON_REGION_BEGIN("residual");
  for (int i = 1; i <= kCells; ++i) {
    change += (next[i] - rod[i]) * (next[i] - rod[i]);
    rod[i] = next[i];
  }
  AON_REGION_END("residual");
  return change;
}

int main(void) {
  const aon_region_t setup = aon_region("setup");
  const aon_counter_t residual = aon_counter("residual", "K^2");
  aon_region_begin(setup);
  for (int i = 1; i <= kCells; ++i) rod[i] = i <= kCells / 2 ? 100.0 : 0.0;
  aon_region_end(setup);

  double change = 0.0;
  for (int step = 0; step < kSteps; ++step) {
    aon_step_begin(step);
    exchange_ends();
    diffuse();
    change = take_over();
    aon_counter_set(residual, change);
    aon_step_end();
  }
  aon_mark_integer(aon_region("done"), kSteps);
  printf("rod: %d steps, residual %.6e\n", kSteps, change);
  return 0;
}
