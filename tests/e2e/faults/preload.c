// A preload library of the user's: says once per process that it is there.
#include <unistd.h>

__attribute__((constructor)) static void hello(void) {
  static const char kText[] = "preloaded by the user\n";
  if (write(1, kText, sizeof(kText) - 1) < 0) _exit(95);
}
