/// A file of the spool as raw bytes: the walk ends, stays inside the file and never reads a payload
/// that was not asked for.
#include <cstdio>
#include <string>

#include "core/spool/block_reader.h"
#include "core/spool/crc32c.h"
#include "tests/fuzz/target.h"
#include "tests/unit/spool/sample_records.h"
#include "tests/unit/temporary_folder.h"

namespace aon::fuzz {

std::vector<Bytes> seeds() {
  std::vector<Bytes> inputs;
  for (uint8_t repairs : {0, 1}) {
    Bytes file = {repairs};
    spool::test::StreamWriter writer(1, 1);
    for (uint32_t block = 0; block < 3; ++block) {
      writer.append_block(spool::test::random_records(block, 8), block, &file);
    }
    inputs.push_back(file);
  }
  return inputs;
}

namespace {

/// Makes the CRC of every header right again, so that hostile headers get past it.
void repair_headers(Bytes* file) {
  for (size_t at = 0; at + spool::kBlockPrefixBytes <= file->size(); ++at) {
    uint32_t magic;
    std::memcpy(&magic, file->data() + at, sizeof(magic));
    if (magic != spool::kSkippableMagic) continue;
    uint8_t* header = file->data() + at + 8;
    const uint32_t crc = spool::crc32c(header, offsetof(spool::BlockHeader, crc32c));
    std::memcpy(header + offsetof(spool::BlockHeader, crc32c), &crc, sizeof(crc));
  }
}

}  // namespace
}  // namespace aon::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace aon;
  static const aon::test::TemporaryFolder folder;
  fuzz::Input input(data, bytes);
  const bool repairs = (input.take<uint8_t>() & 1) != 0;
  fuzz::Bytes file = input.take_bytes(bytes);
  if (repairs) fuzz::repair_headers(&file);
  const std::filesystem::path path = folder.path() / "file";
  spool::test::write_file(path, file);
  Result<spool::BlockFileReader> reader = spool::BlockFileReader::open(path.string());
  fuzz::check(reader.has_value());
  spool::BlockPosition position;
  uint64_t last_offset = 0;
  for (uint64_t blocks = 0;; ++blocks) {
    const Result<bool> more = reader->next(&position);
    fuzz::check(more.has_value());
    if (!*more) break;
    fuzz::check(position.offset + spool::kBlockPrefixBytes <= file.size());
    fuzz::check(blocks == 0 || position.offset > last_offset);
    last_offset = position.offset;
    const auto payload = reader->payload();
    if (payload) fuzz::check(payload->size() == position.header.raw_bytes);
  }
  const auto scan = spool::scan_headers(path.string());
  fuzz::check(scan.has_value() && scan->valid_bytes <= file.size());
  return 0;
}
