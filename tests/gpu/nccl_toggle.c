/* A profiler plugin that is AON's, the one that AON_TOGGLED_PLUGIN names, of which NCCL's mask can
 * be set to nothing and back while the program runs: so the cost of a level is seen within one
 * process, in turn with nothing. For versions 4 (NCCL 2.27) to 7 of the interface.
 * Thread: nccl_toggle() between operations. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Profiler {
  const char* name;
  void (*init)(void);
  int (*start_event)(void* context, void** handle, void* descriptor);
  int (*stop_event)(void* handle);
  int (*record_event_state)(void* handle, int state, void* arguments);
  int (*finalize)(void* context);
} Profiler;
typedef int (*InitV4)(void** context, int* mask, const char* name, uint64_t id, int nodes,
                      int rank_count, int rank, void* logger);
typedef int (*InitV5)(void** context, uint64_t id, int* mask, const char* name, int nodes,
                      int rank_count, int rank, void* logger);

// NOLINTBEGIN(readability-identifier-naming): NCCL's names
Profiler ncclProfiler_v4;
Profiler ncclProfiler_v5;
Profiler ncclProfiler_v6;
Profiler ncclProfiler_v7;
// NOLINTEND(readability-identifier-naming)
static Profiler g_aons[8]; /* by version */
static int* g_mask;
static int g_level;

static int init_v4(void** context, int* mask, const char* name, uint64_t id, int nodes,
                   int rank_count, int rank, void* logger) {
  g_mask = mask;
  return ((InitV4)g_aons[4].init)(context, mask, name, id, nodes, rank_count, rank, logger);
}

/* Of versions that differ in their events alone. */
#define INIT_SINCE_V5(version)                                                                    \
  static int init_v##version(void** context, uint64_t id, int* mask, const char* name, int nodes, \
                             int rank_count, int rank, void* logger) {                            \
    g_mask = mask;                                                                                \
    return ((InitV5)g_aons[version].init)(context, id, mask, name, nodes, rank_count, rank,       \
                                          logger);                                                \
  }
INIT_SINCE_V5(5)
INIT_SINCE_V5(6)
INIT_SINCE_V5(7)

/* Whether NCCL tells what the level asks for; false: there is nothing to switch. */
int nccl_toggle(int is_on) {
  if (g_mask == NULL) return 0;
  if (*g_mask != 0) g_level = *g_mask;
  *g_mask = is_on ? g_level : 0;
  return g_level != 0;
}

__attribute__((constructor)) static void load(void) {
  Profiler* const ours[8] = {
      [4] = &ncclProfiler_v4, &ncclProfiler_v5, &ncclProfiler_v6, &ncclProfiler_v7};
  void (*const inits[8])(void) = {[4] = (void (*)(void))init_v4,
                                  (void (*)(void))init_v5,
                                  (void (*)(void))init_v6,
                                  (void (*)(void))init_v7};
  const char* path = getenv("AON_TOGGLED_PLUGIN");
  void* library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library == NULL) {
    fprintf(stderr, "nccl_toggle: AON_TOGGLED_PLUGIN: %s\n", path != NULL ? dlerror() : "not set");
    exit(1);
  }
  for (int version = 4; version < 8; ++version) {
    char name[32];
    snprintf(name, sizeof name, "ncclProfiler_v%d", version);
    const Profiler* found = dlsym(library, name);
    if (found == NULL) {
      fprintf(stderr, "nccl_toggle: %s has no %s\n", path, name);
      exit(1);
    }
    g_aons[version] = *found;
    *ours[version] = *found;
    ours[version]->init = inits[version];
  }
}
