// Two ranks. Rank 1 begins receives and pauses the recording; then each is completed, in another
// way each time, and the next one gets its handle, which is completed when the recording goes on.
// Then the same with a persistent receive that is freed meanwhile (tag 6), while the next is made
// and started later, and one receive that the pause does not touch (tag 7), with matched messages
// on two communicators, and with a split collective write to FILE. Prints how many handles came
// back. `paused FILE`
#include "tests/e2e/mpi/programs/check.h"

enum { kForms = 6, kAgain = 50, kReady = 100 };
static int g_in[2];

static void complete(int form, MPI_Request* request) {
  int index, count;
  int is_done = 0;
  while (!is_done) {
    is_done = 1;
    if (form == 0) MPI_Wait(request, MPI_STATUS_IGNORE);
    if (form == 1) MPI_Test(request, &is_done, MPI_STATUS_IGNORE);
    if (form == 2) MPI_Waitall(1, request, MPI_STATUSES_IGNORE);
    if (form == 3) MPI_Waitany(1, request, &index, MPI_STATUS_IGNORE);
    if (form == 4) MPI_Testall(1, request, &is_done, MPI_STATUSES_IGNORE);
    if (form == 5) MPI_Testsome(1, request, &is_done, &count, MPI_STATUSES_IGNORE);
  }
}

/// Rank 0 sends a message of `tag` when rank 1 has posted its receive.
static void post(int tag, MPI_Request* request) {
  MPI_Irecv(&g_in[0], 1, MPI_INT, 0, tag, MPI_COMM_WORLD, request);
  MPI_Send(NULL, 0, MPI_INT, 0, kReady, MPI_COMM_WORLD);
}
static void answer(int tag) {
  MPI_Recv(NULL, 0, MPI_INT, 1, kReady, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send(&tag, 1, MPI_INT, 1, tag, MPI_COMM_WORLD);
}

static int receive_again(int form) {
  MPI_Request first, second;
  post(form, &first);
  const MPI_Request handle = first;
  MPI_Pcontrol(0);
  complete(form, &first);
  CHECK(g_in[0] == form && first == MPI_REQUEST_NULL);
  post(kAgain + form, &second);
  const int is_same = second == handle;
  MPI_Pcontrol(1);
  complete(form, &second);
  CHECK(g_in[0] == kAgain + form);
  return is_same;
}

static int receive_persistent(void) {
  MPI_Request first, second;
  MPI_Recv_init(&g_in[0], 1, MPI_INT, 0, 6, MPI_COMM_WORLD, &first);
  MPI_Start(&first);
  MPI_Send(NULL, 0, MPI_INT, 0, kReady, MPI_COMM_WORLD);
  const MPI_Request handle = first;
  MPI_Pcontrol(0);
  MPI_Wait(&first, MPI_STATUS_IGNORE);
  MPI_Request_free(&first);
  MPI_Recv_init(&g_in[1], 1, MPI_INT, 0, kAgain + 6, MPI_COMM_WORLD, &second);
  const int is_same = second == handle;
  MPI_Pcontrol(1);
  MPI_Start(&second);
  MPI_Send(NULL, 0, MPI_INT, 0, kReady, MPI_COMM_WORLD);
  MPI_Wait(&second, MPI_STATUS_IGNORE);
  MPI_Request_free(&second);
  CHECK(g_in[0] == 6 && g_in[1] == kAgain + 6);
  return is_same;
}

static void receive_over_pause(void) {
  MPI_Request request;
  post(7, &request);
  MPI_Pcontrol(0);
  MPI_Barrier(MPI_COMM_SELF);
  MPI_Pcontrol(1);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(g_in[0] == 7);
}

/// What is probed next gets the handle of a message that was received unseen.
static int receive_matched(MPI_Comm other) {
  MPI_Message message;
  MPI_Mprobe(0, 8, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  const MPI_Message handle = message;
  MPI_Pcontrol(0);
  MPI_Mrecv(&g_in[0], 1, MPI_INT, &message, MPI_STATUS_IGNORE);
  MPI_Mprobe(0, 9, other, &message, MPI_STATUS_IGNORE);
  const int is_same = message == handle;
  MPI_Pcontrol(1);
  MPI_Mrecv(&g_in[1], 1, MPI_INT, &message, MPI_STATUS_IGNORE);
  CHECK(g_in[0] == 8 && g_in[1] == 9);
  return is_same;
}

/// One write ends and another begins unseen.
static void write_split(const char* path) {
  MPI_File file;
  MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  MPI_File_write_all_begin(file, g_in, 1, MPI_INT);
  MPI_Pcontrol(0);
  MPI_File_write_all_end(file, g_in, MPI_STATUS_IGNORE);
  MPI_File_write_all_begin(file, g_in, 2, MPI_INT);
  MPI_Pcontrol(1);
  MPI_File_write_all_end(file, g_in, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc == 2);
  int same_count = 0;
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  for (int form = 0; form <= kForms; ++form) {
    if (world_rank() == 0) {
      answer(form);
      answer(kAgain + form);
    } else {
      same_count += form < kForms ? receive_again(form) : receive_persistent();
    }
  }
  if (world_rank() == 0) {
    answer(7);
    MPI_Send((int[]){8}, 1, MPI_INT, 1, 8, MPI_COMM_WORLD);
    MPI_Send((int[]){9}, 1, MPI_INT, 1, 9, other);
  } else {
    receive_over_pause();
    same_count += receive_matched(other);
    write_split(argv[1]);
    printf("%d of %d handles came back\n", same_count, kForms + 2);
  }
  MPI_Comm_free(&other);
  MPI_Finalize();
  return 0;
}
