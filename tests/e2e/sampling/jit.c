/* Makes a function at run time, as a JIT compiler does, tells perf its name in /tmp/perf-PID.map
 * and spends CPU time in it. The map is read when it has ended: who runs it removes that. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* mov ecx, 1000000; loop: dec ecx; jnz loop; ret */
static const uint8_t kCode[] = {0xb9, 0x40, 0x42, 0x0f, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

int main(int argc, char** argv) {
  char path[64];
  struct timespec now;
  MPI_Init(&argc, &argv);
  void* code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 3;
  memcpy(code, kCode, sizeof(kCode));
  if (mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0) return 4;
  snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
  FILE* map = fopen(path, "w");
  if (map == NULL) return 5;
  fprintf(map, "%lx %zx compiled loop\n", (unsigned long)(uintptr_t)code, sizeof(kCode));
  fclose(map);
  do {
    ((void (*)(void))(uintptr_t)code)();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while (now.tv_sec < 1);
  MPI_Finalize();
  return 0;
}
