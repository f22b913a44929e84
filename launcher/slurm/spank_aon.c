/* SPANK plugin of AON: adds --aon=on|off|OPTIONS to srun, salloc and sbatch.
 *
 *     plugstack.conf:   optional /PREFIX/lib/aon/slurm/spank_aon.so
 *
 * It only sets variables in the task's environment; the TaskProlog, which runs after it, does the
 * rest and has the last word:
 *
 *     --aon=off               AON_DISABLE=1
 *     --aon=on                no AON_DISABLE
 *     --aon=memory=16MiB      AON_MEMORY=16MiB; any option of aon-run, several separated by ';'
 *
 * Every hook returns ESPANK_SUCCESS, even for a text it does not understand: that one is left out.
 * Thread: one; runs in srun and, as the user, in the task before exec. It must be compiled for the
 * very version of Slurm that loads it. */
#include <ctype.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <string.h>

SPANK_PLUGIN(aon, 1);

enum { kMaxTextBytes = 1024 };

static char g_text[kMaxTextBytes]; /* behind --aon=; empty: not given */

static int take_option(int value, const char* text, int is_remote) {
  (void)value;
  (void)is_remote;
  if (text != NULL && strlen(text) < sizeof g_text) strcpy(g_text, text);
  return ESPANK_SUCCESS;
}

static struct spank_option g_option = {
    (char*)"aon", (char*)"on|off|OPTIONS", (char*)"always-on profiling of this job", 1, 0,
    take_option};

int slurm_spank_init(spank_t spank, int argument_count, char** arguments) {
  (void)argument_count;
  (void)arguments;
  if (spank_context() != S_CTX_SLURMD) (void)spank_option_register(spank, &g_option);
  return ESPANK_SUCCESS;
}

/* NAME=VALUE as AON_NAME=VALUE, with capitals and '_' for '-'. */
static void set_one(spank_t spank, const char* setting) {
  char name[64] = "AON_";
  size_t end = strlen(name);
  const char* equals = strchr(setting, '=');
  if (equals == NULL || equals == setting || (size_t)(equals - setting) > sizeof name - end - 1)
    return;
  for (const char* at = setting; at < equals; ++at) {
    const unsigned char letter = (unsigned char)*at;
    if (!isalnum(letter) && letter != '-' && letter != '_') return;
    name[end++] = letter == '-' ? '_' : (char)toupper(letter);
  }
  name[end] = '\0';
  (void)spank_setenv(spank, name, equals + 1, 1);
}

int slurm_spank_task_init(spank_t spank, int argument_count, char** arguments) {
  (void)argument_count;
  (void)arguments;
  if (g_text[0] == '\0') return ESPANK_SUCCESS;
  if (strcmp(g_text, "off") == 0) {
    (void)spank_setenv(spank, "AON_DISABLE", "1", 1);
    return ESPANK_SUCCESS;
  }
  (void)spank_unsetenv(spank, "AON_DISABLE");
  if (strcmp(g_text, "on") == 0) return ESPANK_SUCCESS;
  char texts[kMaxTextBytes];
  char* rest = NULL;
  strcpy(texts, g_text);
  for (char* one = strtok_r(texts, ";", &rest); one != NULL; one = strtok_r(NULL, ";", &rest))
    set_one(spank, one);
  return ESPANK_SUCCESS;
}
