/* A program without an iteration: a master hands out work of random kinds and sizes, and the ranks
 * answer with messages of random sizes. The kinds come from a fixed seed. */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

enum { kCalls = 1500, kMaxBytes = 1 << 16 };

static uint32_t state = 12345;
static uint32_t draw(void) {
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* out = calloc(1, kMaxBytes);
  char* in = calloc(1, kMaxBytes);
  for (int i = 0; i < kCalls && out != NULL && in != NULL; ++i) {
    const int bytes = 1 << draw() % 16;
    const int root = (int)(draw() % 2);
    switch (draw() % 6) {
      case 0:
        MPI_Bcast(out, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
        break;
      case 1:
        MPI_Allreduce(out, in, bytes, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
        break;
      case 2:
        MPI_Reduce(out, in, bytes, MPI_BYTE, MPI_BOR, root, MPI_COMM_WORLD);
        break;
      case 3:
        MPI_Gather(out, bytes / 2, MPI_BYTE, in, bytes / 2, MPI_BYTE, root, MPI_COMM_WORLD);
        break;
      case 4:
        MPI_Sendrecv(out, bytes, MPI_BYTE, 1 - rank, 0, in, bytes, MPI_BYTE, 1 - rank, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        break;
      default:
        MPI_Scatter(out, bytes / 2, MPI_BYTE, in, bytes / 2, MPI_BYTE, root, MPI_COMM_WORLD);
        break;
    }
  }
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
