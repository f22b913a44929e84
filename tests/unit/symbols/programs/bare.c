// Needs no library: compiled as a 32-bit program.
__attribute__((noinline)) int plain(int value) { return value * 3 + 1; }

void _start(void) {
  volatile int sink = plain(1);
  for (;;) sink = sink + 1;
}
