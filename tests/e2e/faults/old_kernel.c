// Starts a program as on an old kernel (tests/old_kernel.h).
#include "tests/old_kernel.h"

#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc < 2) return 96;
  if (become_old_kernel() != 0) {
    perror("seccomp");
    return 95;
  }
  execvp(argv[1], argv + 1);
  perror(argv[1]);
  return 127;
}
