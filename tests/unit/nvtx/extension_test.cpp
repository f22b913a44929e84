// Which places of an extension's table the plugin fills, and what it answers to registrations.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "plugins/nvtx/extension.h"
#include "plugins/nvtx/interface.h"

// NOLINTNEXTLINE(readability-identifier-naming): NVTX's name
extern "C" int InitializeInjectionNvtxExtension(aon::nvtx::ExtensionModule* module);

namespace aon::nvtx {
namespace {

constexpr uint16_t kCompatibility = 0x0104;  // of CUDA 13.0
constexpr intptr_t kUntouched = 0;

/// A table as NVTX offers it, and which of its places were filled.
class Offer {
 public:
  explicit Offer(size_t slot_count = 63, ExtensionId id = ExtensionId::kPayload,
                 uint16_t compatibility = kCompatibility)
      : slots_(slot_count + 1, kUntouched), segment_{0, slot_count, slots_.data()} {
    module_ = {3, sizeof module_, id, compatibility, 1, &segment_, nullptr, nullptr};
  }
  ExtensionModule& module() { return module_; }
  ExtensionSegment& segment() { return segment_; }

  std::vector<size_t> filled() {
    EXPECT_EQ(InitializeInjectionNvtxExtension(&module_), 1);
    std::vector<size_t> places;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i] != kUntouched) places.push_back(i);
    }
    return places;
  }

  template <class F>
  F* at(Payload place) const {
    return reinterpret_cast<F*>(slots_[static_cast<size_t>(place)]);
  }

 private:
  std::vector<intptr_t> slots_;
  ExtensionSegment segment_;
  ExtensionModule module_;
};

using Places = std::vector<size_t>;
using MarkPayloads = void(const Domain*, const PayloadData*, size_t);
using RegisterSchema = uint64_t(const Domain*, const SchemaAttributes*);
using RegisterEnum = uint64_t(const Domain*, const EnumAttributes*);

TEST(NvtxExtension, fills_the_ranges_and_leaves_later_functions_alone) {
  EXPECT_EQ(Offer().filled(), (Places{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(Offer(63, ExtensionId::kPayload, 0x0103).filled().size(), 8u);
  EXPECT_EQ(Offer(63, ExtensionId::kPayload, 0x01ff).filled().size(), 8u);
}

TEST(NvtxExtension, a_short_table_is_filled_as_far_as_it_goes) {
  EXPECT_EQ(Offer(2).filled(), (Places{0, 1}));
  EXPECT_EQ(Offer(5).filled(), (Places{0, 1, 2, 3, 4}));
  EXPECT_EQ(Offer(0).filled(), Places{});
}

TEST(NvtxExtension, other_extensions_stay_empty) {
  for (uint16_t id : {uint16_t{1}, uint16_t{3}, uint16_t{4}, uint16_t{0}, uint16_t{0xffff}})
    EXPECT_EQ(Offer(63, ExtensionId{id}).filled(), Places{}) << id;
}

TEST(NvtxExtension, tables_of_other_versions_stay_empty) {
  for (uint16_t version : {0, 0x0102, 0x0200, 0xffff})
    EXPECT_EQ(Offer(63, ExtensionId::kPayload, version).filled(), Places{}) << version;
}

TEST(NvtxExtension, an_offer_without_a_table_is_no_harm) {
  EXPECT_EQ(InitializeInjectionNvtxExtension(nullptr), 0);
  Offer short_module;
  short_module.module().struct_bytes = 16;
  EXPECT_EQ(short_module.filled(), Places{});
  Offer no_segment;
  no_segment.module().segment_count = 0;
  EXPECT_EQ(no_segment.filled(), Places{});
  Offer null_segments;
  null_segments.module().segments = nullptr;
  EXPECT_EQ(null_segments.filled(), Places{});
  Offer no_slots;
  no_slots.segment().slots = nullptr;
  EXPECT_EQ(no_slots.filled(), Places{});
}

/// Two pages of which the second may not be read.
class Guarded {
 public:
  Guarded() { mprotect(start_ + bytes_, bytes_, PROT_NONE); }
  ~Guarded() { munmap(start_, 2 * bytes_); }
  /// Where `bytes` end with what may be read.
  char* last(size_t bytes) const { return start_ + bytes_ - bytes; }

 private:
  const size_t bytes_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  char* const start_ = static_cast<char*>(
      mmap(nullptr, 2 * bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
};

TEST(NvtxPayloads, of_a_text_nothing_behind_its_end_is_read) {
  Offer offer;
  offer.filled();
  const Guarded pages;
  char* text = pages.last(sizeof "hi");
  strcpy(text, "hi");
  for (const EntryType type : {EntryType::kText, EntryType::kTextUtf8}) {
    const PayloadData payload = {static_cast<uint64_t>(type), SIZE_MAX, text};
    offer.at<MarkPayloads>(Payload::kMark)(nullptr, &payload, 1);
  }
}

class NvtxSchemas : public testing::Test {
 protected:
  void SetUp() override { offer_.filled(); }
  uint64_t schema(const SchemaAttributes* attributes) {
    return offer_.at<RegisterSchema>(Payload::kSchemaRegister)(nullptr, attributes);
  }
  uint64_t enumeration(const EnumAttributes* attributes) {
    return offer_.at<RegisterEnum>(Payload::kEnumRegister)(nullptr, attributes);
  }
  static SchemaAttributes attributes(uint64_t id) {
    static const SchemaEntry entry = {0, EntryType::kUint64, "a", nullptr, 0, 0, nullptr, nullptr};
    SchemaAttributes it = {};
    it.fields =
        kSchemaName | kSchemaType | kSchemaEntries | kSchemaEntryCount | (id != 0 ? kSchemaId : 0);
    it.name = "a schema";
    it.type = kStaticSchema;
    it.entries = &entry;
    it.entry_count = 1;
    it.id = id;
    return it;
  }
  Offer offer_;
};

TEST_F(NvtxSchemas, have_the_id_they_ask_for_or_one_of_their_own) {
  SchemaAttributes chosen = attributes(kFirstStaticId + 5);
  EXPECT_EQ(schema(&chosen), kFirstStaticId + 5);
  EXPECT_EQ(schema(&chosen), kFirstStaticId + 5) << "a second time";
  SchemaAttributes any = attributes(0);
  const uint64_t first = schema(&any);
  const uint64_t second = schema(&any);
  EXPECT_GE(first, kFirstDynamicId);
  EXPECT_GE(second, kFirstDynamicId);
  EXPECT_NE(first, second);
  EnumAttributes kinds = {};
  kinds.fields = kEnumBytes;
  kinds.bytes = 4;
  EXPECT_GE(enumeration(&kinds), kFirstDynamicId);
  kinds.fields |= kEnumId;
  kinds.id = kFirstStaticId + 6;
  EXPECT_EQ(enumeration(&kinds), kFirstStaticId + 6);
}

TEST_F(NvtxSchemas, that_say_nothing_are_answered) {
  EXPECT_EQ(schema(nullptr), 0u);
  EXPECT_EQ(enumeration(nullptr), 0u);
  SchemaAttributes none = {};
  EXPECT_GE(schema(&none), kFirstDynamicId);
  SchemaAttributes no_entries = attributes(0);
  no_entries.entries = nullptr;
  EXPECT_GE(schema(&no_entries), kFirstDynamicId);
}

TEST_F(NvtxSchemas, more_than_there_is_room_for_have_ids_all_the_same) {
  const SchemaAttributes any = attributes(0);
  std::vector<uint64_t> ids;
  for (int i = 0; i < 5000; ++i) ids.push_back(schema(&any));
  EXPECT_GE(*std::min_element(ids.begin(), ids.end()), kFirstDynamicId);
  const SchemaAttributes chosen = attributes(kFirstStaticId + 7);
  EXPECT_EQ(schema(&chosen), kFirstStaticId + 7);
}

}  // namespace
}  // namespace aon::nvtx
