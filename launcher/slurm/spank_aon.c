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
 * srun, salloc and sbatch refuse a text that is none of these, before there is a job. In a job each
 * hook returns ESPANK_SUCCESS: what is not understood there is left out.
 * Thread: one; runs in srun and, as the user, in the task before exec. It must be compiled for the
 * very version of Slurm that loads it. */
#include <ctype.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <string.h>

SPANK_PLUGIN(aon, 1);

enum { kMaxTextBytes = 1024 };

static char g_text[kMaxTextBytes]; /* behind --aon=; empty: not given */

/* Those of aon-run --help; each between spaces. */
static const char kOptions[] =
    " output providers without memory node-memory disk spool-dir rendezvous flush-ms attach-ms"
    " budget sampling call-graph sampling-fallback events gpu-counters hang nccl-level"
    " cupti-mode cupti-graph cupti-calls cupti-memory"
    " record-fixture wait drop-spool no-assemble otf2-locations nccl-as-mpi dry-run verbose ";

/* True when `bytes` of `name` are an option's name; '_' stands for '-', capitals do not matter. */
static int is_option(const char* name, size_t bytes) {
  char wanted[32] = " ";
  if (bytes == 0 || bytes > sizeof wanted - 3) return 0;
  for (size_t i = 0; i < bytes; ++i) {
    if (isspace((unsigned char)name[i])) return 0;
    wanted[i + 1] = name[i] == '_' ? '-' : (char)tolower((unsigned char)name[i]);
  }
  wanted[bytes + 1] = ' ';
  return strstr(kOptions, wanted) != NULL;
}

/* on, off, or NAME=VALUE between ';'. */
static int is_understood(const char* text) {
  if (strcmp(text, "on") == 0 || strcmp(text, "off") == 0) return 1;
  if (strlen(text) >= kMaxTextBytes) return 0;
  int setting_count = 0;
  while (*text != '\0') {
    const size_t bytes = strcspn(text, ";");
    const char* equals = memchr(text, '=', bytes);
    if (bytes != 0 && (equals == NULL || !is_option(text, (size_t)(equals - text)))) return 0;
    if (bytes != 0) ++setting_count;
    text += bytes + (text[bytes] == ';');
  }
  return setting_count != 0;
}

static int take_option(int value, const char* text, int is_remote) {
  (void)value;
  if (text == NULL) text = "";
  if (!is_remote && !is_understood(text)) {
    slurm_error(
        "--aon='%.100s': expected on, off or NAME=VALUE, several separated by ';', each "
        "NAME one of:%s",
        text, kOptions);
    return -1;
  }
  if (strlen(text) < sizeof g_text) strcpy(g_text, text);
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
