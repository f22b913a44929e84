// no_links 0|1 PROGRAM ARGUMENTS: starts a program as on a file system without hard links; 0: nor
// has it a rename that replaces nothing.
#include "tests/no_links.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc < 3) return 96;
  if (become_without_links(strcmp(argv[1], "0") != 0) != 0) {
    perror("seccomp");
    return 95;
  }
  execvp(argv[2], argv + 2);
  perror(argv[2]);
  return 127;
}
