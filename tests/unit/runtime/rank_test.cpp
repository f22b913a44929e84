#include "core/runtime/rank.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace aon::runtime {
namespace {

std::map<std::string, std::string> g_variables;

const char* read(const char* name) {
  const auto found = g_variables.find(name);
  return found != g_variables.end() ? found->second.c_str() : nullptr;
}

RankInfo rank_of(std::map<std::string, std::string> variables) {
  g_variables = std::move(variables);
  return rank_from_environment(read);
}

TEST(Rank, is_none_without_a_launcher) {
  EXPECT_EQ(rank_of({}).rank, -1);
  EXPECT_EQ(rank_of({{"PATH", "/bin"}}).world_size, 0u);
}

TEST(Rank, of_open_mpi_wins_over_the_batch_tasks_slurm_variables) {
  const RankInfo info = rank_of({{"OMPI_COMM_WORLD_RANK", "3"},
                                 {"OMPI_COMM_WORLD_SIZE", "4"},
                                 {"PMIX_RANK", "3"},
                                 {"SLURM_PROCID", "0"},
                                 {"SLURM_NTASKS", "1"}});
  EXPECT_EQ(info.rank, 3);
  EXPECT_EQ(info.world_size, 4u);
}

TEST(Rank, of_slurm_counts_only_in_a_step) {
  EXPECT_EQ(rank_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).rank, -1);
  EXPECT_EQ(rank_of({{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "4294967290"}}).rank, -1);
  const RankInfo info =
      rank_of({{"SLURM_PROCID", "5"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "8"}});
  EXPECT_EQ(info.rank, 5);
  EXPECT_EQ(info.world_size, 8u);
}

TEST(Rank, of_srun_with_pmix_takes_the_size_from_the_step) {
  const RankInfo info = rank_of({{"PMIX_RANK", "2"},
                                 {"SLURM_STEP_ID", "1"},
                                 {"SLURM_PROCID", "2"},
                                 {"SLURM_STEP_NUM_TASKS", "6"}});
  EXPECT_EQ(info.rank, 2);
  EXPECT_EQ(info.world_size, 6u);
}

TEST(Rank, of_hydra_pals_flux_and_mvapich) {
  EXPECT_EQ(rank_of({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}).world_size, 2u);
  EXPECT_EQ(rank_of({{"PMI_ID", "1"}, {"PMI_SIZE", "2"}}).rank, 1);
  EXPECT_EQ(rank_of({{"PALS_RANKID", "7"}, {"PMI_RANK", "7"}, {"PMI_SIZE", "9"}}).world_size, 9u);
  EXPECT_EQ(rank_of({{"FLUX_TASK_RANK", "4"}, {"FLUX_JOB_SIZE", "5"}}).rank, 4);
  EXPECT_EQ(rank_of({{"MV2_COMM_WORLD_RANK", "6"}, {"MV2_COMM_WORLD_SIZE", "7"}}).rank, 6);
}

TEST(Rank, of_torchrun_wins_inside_its_worker_only) {
  const std::map<std::string, std::string> outer = {{"OMPI_COMM_WORLD_RANK", "1"},
                                                    {"OMPI_COMM_WORLD_SIZE", "2"},
                                                    {"RANK", "5"},
                                                    {"WORLD_SIZE", "8"}};
  EXPECT_EQ(rank_of(outer).rank, 1);
  auto worker = outer;
  worker["TORCHELASTIC_RUN_ID"] = "none";
  EXPECT_EQ(rank_of(worker).rank, 5);
  EXPECT_EQ(rank_of(worker).world_size, 8u);
}

TEST(Rank, ignores_what_is_no_number) {
  EXPECT_EQ(rank_of({{"OMPI_COMM_WORLD_RANK", ""}}).rank, -1);
  EXPECT_EQ(rank_of({{"OMPI_COMM_WORLD_RANK", "x"}, {"PMI_RANK", "2"}}).rank, 2);
  EXPECT_EQ(rank_of({{"PMI_RANK", "99999999999"}}).rank, -1);
  EXPECT_EQ(rank_of({{"PMI_RANK", "3"}, {"PMI_SIZE", "2"}}).world_size, 0u);
}

}  // namespace
}  // namespace aon::runtime
