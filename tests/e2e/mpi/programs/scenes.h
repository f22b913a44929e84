/// Four ranks in scenes that all begin at the same time: in each, somebody comes late on purpose,
/// by half of a scene. Each rank says by how much the machine made it later than that, at most.
#pragma once

#include <time.h>

#include "tests/e2e/mpi/programs/check.h"

static struct timespec g_start;
static long g_scene_ms;
static int g_scene;
static double g_overslept_s;

static void sleep_until(double scenes) {
  const long long after_ns = (long long)(scenes * (double)g_scene_ms * 1e6);
  struct timespec until = g_start;
  until.tv_sec += (time_t)(after_ns / 1000000000);
  until.tv_nsec += (long)(after_ns % 1000000000);
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    ++until.tv_sec;
  }
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {
  }
}

static void begin_at(double begin_scene) {
  sleep_until(begin_scene);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const double over_s = (double)(now.tv_sec - g_start.tv_sec) +
                        (double)(now.tv_nsec - g_start.tv_nsec) * 1e-9 -
                        begin_scene * (double)g_scene_ms * 1e-3;
  if (over_s > g_overslept_s) g_overslept_s = over_s;
}

/// Begins the next scene; a late rank half of it later.
static void begin(int is_late) {
  ++g_scene;
  begin_at(g_scene + (is_late ? 0.5 : 0.0));
}

/// Within a scene.
static void be_late(void) { begin_at(g_scene + 0.5); }

static void start_scenes(long scene_ms) {
  g_scene_ms = scene_ms;
  CHECK(world_count() == 4);
  struct timespec starts[4];
  clock_gettime(CLOCK_MONOTONIC, &g_start);
  MPI_Allgather(&g_start, sizeof g_start, MPI_BYTE, starts, sizeof g_start, MPI_BYTE,
                MPI_COMM_WORLD);
  g_start = starts[0];
}

static void end_scenes(void) {
  begin(0);
  printf("overslept %f\n", g_overslept_s);
}
