// A program of any C library: annotated, with a thread and a child, a line from each.
#include <aon/annotate.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char* who) {
  AON_REGION_BEGIN("say");
  printf("hello of the %s\n", who);
  fflush(stdout);
  AON_REGION_END("say");
}

static void* of_thread(void* unused) {
  say("thread");
  return unused;
}

int main(void) {
  pthread_t thread;
  say("program");
  if (pthread_create(&thread, NULL, of_thread, NULL) != 0) return 1;
  pthread_join(thread, NULL);
  const pid_t child = fork();
  if (child == 0) {
    say("child");
    _exit(0);
  }
  int status = 1;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
