#include "core/runtime/rank.h"

namespace aon::runtime {
namespace {

using Read = const char* (*)(const char*);

/// Value of a variable that holds nothing but a number below `limit`; -1 otherwise.
int64_t number(Read read, const char* name, int64_t limit = INT32_MAX) {
  const char* text = name != nullptr ? read(name) : nullptr;
  if (text == nullptr || *text == '\0') return -1;
  int64_t value = 0;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9') return -1;
    value = value * 10 + (*text - '0');
    if (value > limit) return -1;
  }
  return value;
}

struct Launcher {
  const char* rank;
  const char* size;
  const char* other_size;
  const char* required;  ///< a variable that must be there too
};

constexpr Launcher kLaunchers[] = {
    {"RANK", "WORLD_SIZE", nullptr, "TORCHELASTIC_RUN_ID"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr, nullptr},
    {"PALS_RANKID", "PALS_SIZE", "PMI_SIZE", nullptr},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE", "PMI_SIZE", nullptr},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", nullptr, nullptr},
    {"PMIX_RANK", "SLURM_STEP_NUM_TASKS", nullptr, nullptr},
    {"PMI_RANK", "PMI_SIZE", nullptr, nullptr},
    {"PMI_ID", "PMI_SIZE", nullptr, nullptr},
};

/// Step ids from 4294967290 on are not steps of srun: interactive, batch, extern.
constexpr int64_t kLastStep = 4294967289;

RankInfo rank_in_slurm_step(Read read) {
  const int64_t step = number(read, "SLURM_STEP_ID", kLastStep);
  const int64_t rank = number(read, "SLURM_PROCID");
  if (step < 0 || rank < 0) return {};
  int64_t size = number(read, "SLURM_STEP_NUM_TASKS");
  if (size < 0) size = number(read, "SLURM_NTASKS");
  return {static_cast<int32_t>(rank), size > rank ? static_cast<uint32_t>(size) : 0};
}

}  // namespace

RankInfo rank_from_environment(Read read) {
  for (const Launcher& launcher : kLaunchers) {
    if (launcher.required != nullptr && read(launcher.required) == nullptr) continue;
    const int64_t rank = number(read, launcher.rank);
    if (rank < 0) continue;
    int64_t size = number(read, launcher.size);
    if (size < 0) size = number(read, launcher.other_size);
    return {static_cast<int32_t>(rank), size > rank ? static_cast<uint32_t>(size) : 0};
  }
  return rank_in_slurm_step(read);
}

}  // namespace aon::runtime
