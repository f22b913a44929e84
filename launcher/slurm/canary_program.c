/* The program that aon-canary tries AON on: two regions, a line of output and an exit code. */
#include <aon/annotate.h>
#include <stdio.h>

int main(void) {
  for (int i = 0; i < 100; ++i) {
    AON_REGION_BEGIN("canary");
    AON_REGION_END("canary");
  }
  puts("canary sings");
  return 42;
}
