#include "writers/symbols/lines.h"

#include <dwarf.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "writers/symbols/helper.h"
#include "writers/symbols/readable_name.h"

namespace aon::symbols {

namespace {

constexpr uint32_t kNoUnit = ~0u;
constexpr int kMaxDepth = 256;

/// What the caller of an inlined function stood at.
struct Place {
  uint32_t file = 0;
  uint32_t line = 0;
};

__attribute__((noreturn)) void end_without_memory() { _exit(kOutOfMemoryExit); }

/// What the linker left out stays in the debug information, at address 0.
bool is_live(Dwarf_Addr begin, Dwarf_Addr end) { return begin != 0 && begin < end; }

uint32_t number_of(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_formudata(dwarf_attr(die, name, &attribute), &value) != 0) return 0;
  return static_cast<uint32_t>(std::min<Dwarf_Word>(value, INT32_MAX));
}

}  // namespace

Result<Lines> Lines::open(const ElfFile& file, StringPool* strings) {
  if (file.section(".debug_info") == nullptr && file.section(".zdebug_info") == nullptr)
    return Error{Code::kUnavailable, file.path() + " has no debug information"};
  Lines lines;
  lines.strings_ = strings;
  lines.dwarf_.reset(dwarf_begin_elf(file.elf(), DWARF_C_READ, nullptr));
  if (!lines.dwarf_)
    return Error{Code::kDamaged, file.path() + ": debug information: " + dwarf_errmsg(-1)};
  // Its own handler ends the process through exit(), which would run our parent's handlers.
  dwarf_new_oom_handler(lines.dwarf_.get(), end_without_memory);
  lines.index_units();
  return lines;
}

void Lines::index_units() {
  Dwarf_CU* cu = nullptr;
  Dwarf_Half version = 0;
  uint8_t type = 0;
  Dwarf_Die die, split;
  while (dwarf_get_units(dwarf_.get(), cu, &cu, &version, &type, &die, &split) == 0) {
    if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
    const auto number = static_cast<uint32_t>(units_.size());
    const size_t before = ranges_.size();
    Dwarf_Addr base = 0, begin = 0, end = 0;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &begin, &end)) > 0;)
      if (is_live(begin, end)) ranges_.push_back({begin, end, number});
    if (ranges_.size() == before) continue;
    units_.push_back({die, split.addr != nullptr ? split : die});
  }
  std::sort(ranges_.begin(), ranges_.end(),
            [](const UnitRange& a, const UnitRange& b) { return a.begin < b.begin; });
}

uint32_t Lines::unit_of(uint64_t address) const {
  constexpr int kMaxSteps = 16;  // ranges of sane files do not overlap
  auto at = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                             [](uint64_t a, const UnitRange& range) { return a < range.begin; });
  for (int step = 0; step < kMaxSteps && at != ranges_.begin(); ++step) {
    --at;
    if (address < at->end) return at->unit;
  }
  return kNoUnit;
}

void Lines::resolve(std::span<const uint64_t> addresses,
                    const std::function<void(size_t, std::span<const LineFrame>)>& sink) {
  struct Hit {
    uint32_t unit = 0;
    size_t index = 0;
  };
  std::vector<Hit> hits;
  for (size_t i = 0; i < addresses.size(); ++i)
    if (const uint32_t unit = unit_of(addresses[i]); unit != kNoUnit) hits.push_back({unit, i});
  std::stable_sort(hits.begin(), hits.end(),
                   [](const Hit& a, const Hit& b) { return a.unit < b.unit; });
  std::vector<Query> queries;
  std::vector<LineFrame> frames;
  for (size_t first = 0, last = 0; first < hits.size(); first = last) {
    queries.clear();
    scopes_.clear();
    files_.clear();
    for (; last < hits.size() && hits[last].unit == hits[first].unit; ++last)
      queries.push_back({addresses[hits[last].index], hits[last].index, {}});
    Unit& unit = units_[hits[first].unit];
    walk(&unit.scope, queries, 0);
    for (const Query& query : queries) {
      make_frames(&unit, query, &frames);
      if (!frames.empty()) sink(query.index, frames);
    }
  }
}

/// Notes in each query the functions around it. Blocks are entered because functions can lie in
/// them: contained procedures of Fortran, what OpenMP outlines. Types are not.
void Lines::walk(Dwarf_Die* parent, std::span<Query> queries, int depth) {
  Dwarf_Die child;
  if (depth > kMaxDepth || dwarf_child(parent, &child) != 0) return;
  do {
    switch (dwarf_tag(&child)) {
      case DW_TAG_subprogram:
        note_scope(&child, false, queries);
        break;
      case DW_TAG_inlined_subroutine:
        note_scope(&child, true, queries);
        break;
      case DW_TAG_namespace:
      case DW_TAG_module:
      case DW_TAG_lexical_block:
      case DW_TAG_try_block:
      case DW_TAG_catch_block:
      case DW_TAG_with_stmt:
        break;
      default:
        continue;
    }
    walk(&child, queries, depth + 1);
  } while (dwarf_siblingof(&child, &child) == 0);
}

void Lines::note_scope(Dwarf_Die* die, bool is_inlined, std::span<Query> queries) {
  Dwarf_Addr base = 0, begin = 0, end = 0;
  uint32_t number = kNoUnit;
  for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &begin, &end)) > 0;) {
    if (!is_live(begin, end)) continue;
    auto query = std::lower_bound(queries.begin(), queries.end(), begin,
                                  [](const Query& q, uint64_t a) { return q.address < a; });
    for (; query != queries.end() && query->address < end; ++query) {
      if (number == kNoUnit) {
        number = static_cast<uint32_t>(scopes_.size());
        scopes_.push_back({*die, is_inlined});
      }
      // Overlapping ranges of a damaged file name a scope twice.
      if (query->scopes.empty() || query->scopes.back() != number) query->scopes.push_back(number);
    }
  }
}

void Lines::make_frames(Unit* unit, const Query& query, std::vector<LineFrame>* frames) {
  frames->clear();
  Place place;
  if (Dwarf_Line* line = dwarf_getsrc_die(&unit->die, query.address); line != nullptr) {
    int number = 0;
    place.file = file_name(unit, dwarf_linesrc(line, nullptr, nullptr));
    if (dwarf_lineno(line, &number) == 0 && number > 0) place.line = static_cast<uint32_t>(number);
  }
  Dwarf_Files* files = nullptr;
  size_t file_count = 0;
  size_t left = query.scopes.size();
  for (; left > 0 && scopes_[query.scopes[left - 1]].is_inlined; --left) {
    Dwarf_Die* die = &scopes_[query.scopes[left - 1]].die;
    frames->push_back({function_name(die), place.file, place.line, true});
    place = {0, number_of(die, DW_AT_call_line)};
    if (files == nullptr && dwarf_getsrcfiles(&unit->scope, &files, &file_count) != 0) continue;
    const uint32_t file_number = number_of(die, DW_AT_call_file);
    if (file_number >= file_count) continue;
    place.file = file_name(unit, dwarf_filesrc(files, file_number, nullptr, nullptr));
  }
  const uint32_t function = left > 0 ? function_name(&scopes_[query.scopes[left - 1]].die) : 0;
  if (function != 0 || place.file != 0 || !frames->empty())
    frames->push_back({function, place.file, place.line, false});
}

/// A relative name is one in the folder that the compiler ran in.
uint32_t Lines::file_name(Unit* unit, const char* name) {
  if (name == nullptr) return 0;
  const auto [known, is_new] = files_.try_emplace(name, 0);
  if (!is_new) return known->second;
  std::filesystem::path path = name;
  Dwarf_Attribute attribute;
  const char* folder = dwarf_formstring(dwarf_attr(&unit->die, DW_AT_comp_dir, &attribute));
  if (path.is_relative() && folder != nullptr) path = std::filesystem::path(folder) / path;
  return known->second = strings_->number(path.lexically_normal().native());
}

uint32_t Lines::function_name(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    const char* text = dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
    if (text != nullptr) return readable(text);
  }
  const char* text = dwarf_diename(die);
  return text == nullptr ? 0 : strings_->number(text);
}

/// Demangles each name once: the debug information has it at one place.
uint32_t Lines::readable(const char* linkage_name) {
  const auto found = names_.find(linkage_name);
  if (found != names_.end()) return found->second;
  const uint32_t number = strings_->number(readable_name(linkage_name));
  names_.emplace(linkage_name, number);
  return number;
}

}  // namespace aon::symbols
