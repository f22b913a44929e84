/// The spool: what the agent leaves on disk and every writer reads. One folder per node:
///
///     DIR/spool/NODE/definitions.aon   definition blocks; never evicted
///     DIR/spool/NODE/pP.S.aon          record blocks of process P, segment S (S counts from 0)
///     DIR/spool/NODE/pP.tT.S.aon       the same of slot T alone, which fills segments of its own
///     DIR/spool/NODE/topology.xml      hwloc's export
///
/// A file is a sequence of blocks. A block is a zstd skippable frame that holds a BlockHeader, then
/// one or more zstd frames with content size and checksum, whose contents in a row are the payload.
/// So a file is a legal .zst stream, and damage costs the blocks it hits: the reader searches the
/// next magic and goes on.
///
///     | 0x184D2A5A u32 | 96 u32 | BlockHeader 96 B, crc32c last | zstd frames, compressed_bytes |
///
/// Payload of a record block: the regions open at its start (u32 count, then count times
/// {u32 region, u64 start_ticks}) and the columns of block_codec.h. Payload of a definition block:
/// {u32 type, u32 bytes, bytes} repeated.
/// Layout only; depends on nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace aon::spool {

constexpr uint32_t kSpoolFormat = 1;
constexpr uint32_t kSkippableMagic = 0x184D2A5Au;
constexpr uint64_t kBlockMagic = 0x316b6c42'4e4f41ull;  ///< "AONBlk1"
constexpr uint32_t kMaxBlockRecords = 8192;
constexpr uint32_t kMaxBlockBytes =
    4u << 20;  ///< of an uncompressed payload; larger headers are damage

enum class BlockKind : uint32_t { kDefinitions = 1, kRecords = 2 };

struct BlockHeader {
  uint64_t magic;
  uint32_t version;
  BlockKind kind;
  uint32_t process;  ///< number of the process on its node
  uint16_t slot;     ///< of the ring, or one of the agent's below
  uint16_t context;
  uint64_t block_sequence;  ///< of this file
  uint64_t first_sequence;  ///< counted records of this stream before this block
  uint64_t first_ticks;     ///< smallest start
  uint64_t last_ticks;      ///< largest end
  uint32_t record_count;    ///< all records
  uint32_t counted_count;   ///< the counted ones among them
  uint32_t raw_bytes;
  uint32_t compressed_bytes;
  uint64_t reserved[2];
  uint32_t reserved32;
  uint32_t crc32c;  ///< of the bytes before it
};
static_assert(sizeof(BlockHeader) == 96);

/// Slot number of samples taken by the agent (perf counts, node metrics); never a ring slot.
constexpr uint16_t kSeriesSlot = 0xffff;
/// The same of call samples.
constexpr uint16_t kCallSampleSlot = 0xfffe;
constexpr bool is_agent_slot(uint16_t slot) { return slot >= kCallSampleSlot; }
/// Process number of what belongs to the node and no process.
constexpr uint32_t kNodeProcess = 0xffffffffu;

}  // namespace aon::spool
