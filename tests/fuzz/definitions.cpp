/// A definition block as it comes from a process: read_job and the clock's fit take whatever it
/// says, and every text that comes out is bounded.
///
///     input:  u32 process, payload of a definition block
#include "core/spool/definitions.h"
#include "core/clock/clock_map.h"
#include "core/spool/job.h"
#include "core/spool/text.h"
#include "tests/fuzz/target.h"
#include "tests/unit/spool/sample_records.h"
#include "tests/unit/temporary_folder.h"

namespace aon::fuzz {

std::vector<Bytes> seeds() {
  const std::pair<uint32_t, size_t> structs[] = {{1, sizeof(RegionDefinition)},
                                                 {2, sizeof(CommunicatorDefinition)},
                                                 {3, sizeof(IdDefinition)},
                                                 {5, sizeof(IdentityDefinition)},
                                                 {6, sizeof(ProviderDefinition)},
                                                 {7, sizeof(MetricDefinition)},
                                                 {8, sizeof(WindowDefinition)},
                                                 {9, sizeof(IdDefinition)},
                                                 {10, sizeof(IdDefinition)},
                                                 {11, sizeof(GroupDefinition)},
                                                 {12, sizeof(FileDefinition)},
                                                 {13, sizeof(IdDefinition)},
                                                 {17, sizeof(CartesianDefinition)},
                                                 {18, sizeof(NeighborsDefinition)},
                                                 {32, sizeof(NodeDefinition)},
                                                 {33, sizeof(ProcessStartDefinition)},
                                                 {34, sizeof(ProcessExitDefinition)},
                                                 {35, sizeof(ClockDefinition)},
                                                 {36, sizeof(StreamDefinition)},
                                                 {37, sizeof(CountsDefinition)},
                                                 {38, sizeof(LossDefinition)},
                                                 {39, 0},
                                                 {40, 0},
                                                 {41, sizeof(BudgetDefinition)},
                                                 {42, sizeof(UsageDefinition)}};
  std::vector<Bytes> inputs;
  for (uint8_t fill : {0, 1, 0xff}) {
    Bytes input = {0, 0, 0, 0};
    for (const auto& [type, struct_bytes] : structs) {
      constexpr char kTexts[] = "one\0two\0three";
      const auto total_bytes = static_cast<uint32_t>(struct_bytes + sizeof(kTexts));
      for (uint32_t number : {type, total_bytes}) {
        for (int i = 0; i < 4; ++i) input.push_back(static_cast<uint8_t>(number >> (8 * i)));
      }
      input.insert(input.end(), struct_bytes, fill);
      input.insert(input.end(), kTexts, kTexts + sizeof(kTexts));
    }
    inputs.push_back(input);
  }
  return inputs;
}

}  // namespace aon::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace aon;
  static const aon::test::TemporaryFolder folder;
  static spool::BlockSealer sealer;
  const std::filesystem::path node = folder.path() / "spool" / "n";
  std::filesystem::create_directories(node);
  fuzz::Input input(data, bytes);
  spool::BlockHeader header{};
  header.kind = spool::BlockKind::kDefinitions;
  header.process = input.take<uint32_t>();
  fuzz::Bytes file;
  fuzz::check(sealer.seal(header, input.take_bytes(bytes), &file).has_value());
  spool::test::write_file(node / spool::kDefinitionsFile, file);
  const Result<spool::Job> job = spool::read_job(folder.path());
  fuzz::check(job.has_value() && job->nodes.size() == 1);
  const spool::Node& read = job->nodes[0];
  for (const auto& [number, process] : read.processes) {
    fuzz::check(process.start.process == number);
    for (const auto& [id, region] : process.regions) {
      fuzz::check(region.name.size() <= spool::kMaxTextBytes && region.role <= RegionRole::kStep);
    }
    for (const auto& [id, window] : process.windows) {
      fuzz::check(window.name.size() <= spool::kMaxTextBytes &&
                  window.definition.flavour <= WindowFlavour::kDynamic);
    }
    for (const auto& [id, ranks] : process.rank_groups) {
      fuzz::check(ranks.size() <= kMaxGroupMembers);
    }

    for (const auto& [id, named] : process.files) {
      fuzz::check(named.name.size() <= spool::kMaxTextBytes && named.definition.id == id);
    }
    for (const LossDefinition& loss : process.losses) fuzz::check(loss.reason < kLossReasonCount);
  }
  const auto map = clock::ClockMap::fit(read.clock, clock::TickSource::kTsc, 2e9);
  uint64_t last_ns = 0;
  for (const auto& piece : map.pieces()) {
    fuzz::check(piece.first_ns >= last_ns);
    last_ns = piece.first_ns;
  }
  return 0;
}
