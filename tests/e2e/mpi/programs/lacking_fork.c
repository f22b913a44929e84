// A thread goes through the loaded files all the time, and forked children look for a function of
// an MPI library that nobody has called.
//
//   lacking_fork MPI_LIBRARY NAME
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int take_time(struct dl_phdr_info* info, size_t size, void* data) {
  (void)info;
  (void)size;
  (void)data;
  usleep(200);
  return 0;
}

static void* go_through_files(void* data) {
  for (;;) dl_iterate_phdr(take_time, data);
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t thread;
  if (argc < 3 || dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) == NULL) return 1;
  if (pthread_create(&thread, NULL, go_through_files, NULL) != 0) return 1;
  int ended = 0;
  for (int i = 0; i < 10; ++i) {
    usleep(1000);
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      dlsym(RTLD_DEFAULT, argv[2]);
      _exit(0);
    }
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0) ++ended;
  }
  printf("%d children ended\n", ended);
  fflush(stdout);
  _exit(0);
}
