/// Lines: source lines and inlined functions of addresses, from a file's DWARF (4 and 5, split
/// too) through libdw. The units of the file are sorted by address once; then each unit that has
/// addresses in it is walked once for all of them, so the cost grows with the units hit, not with
/// addresses times units.
///
/// libdw trusts its input more than we do: use it in a process that may die (helper.h).
/// Thread: one owner.   Cost: about 1 us a unit to open, 0.2 us per entry of a unit that is hit.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/elf_file.h"
#include "core/base/result.h"
#include "writers/symbols/string_pool.h"

namespace aon::symbols {

/// One function of an address, innermost first; texts are numbers of the StringPool.
struct LineFrame {
  uint32_t function = 0;
  uint32_t file = 0;
  uint32_t line = 0;
  bool is_inlined = false;
};

class Lines {
 public:
  /// Errors: kUnavailable when the file has no debug information, kDamaged when libdw refuses it.
  static Result<Lines> open(const ElfFile& file, StringPool* strings);

  /// Gives the frames of every address that the debug information knows. `addresses` ascend.
  /// The outermost frame has function 0 where only the symbol table can tell it.
  void resolve(std::span<const uint64_t> addresses,
               const std::function<void(size_t index, std::span<const LineFrame>)>& sink);

 private:
  struct EndDwarf {
    void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
  };
  struct Unit {
    Dwarf_Die die{};    ///< has the line table
    Dwarf_Die scope{};  ///< has the functions: `die`, or its split part
  };
  struct UnitRange {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint32_t unit = 0;
  };
  /// A function or inlined function that covers an address.
  struct Scope {
    Dwarf_Die die{};
    bool is_inlined = false;
  };
  struct Query {
    uint64_t address = 0;
    size_t index = 0;
    std::vector<uint32_t> scopes;  ///< outermost first, numbers in scopes_
  };

  void index_units();
  uint32_t unit_of(uint64_t address) const;
  void walk(Dwarf_Die* parent, std::span<Query> queries, int depth);
  void note_scope(Dwarf_Die* die, bool is_inlined, std::span<Query> queries);
  void make_frames(Unit* unit, const Query& query, std::vector<LineFrame>* frames);
  uint32_t file_name(Unit* unit, const char* name);
  uint32_t function_name(Dwarf_Die* die);
  uint32_t readable(const char* linkage_name);

  StringPool* strings_ = nullptr;
  std::unique_ptr<Dwarf, EndDwarf> dwarf_;
  std::vector<Unit> units_;
  std::vector<UnitRange> ranges_;
  std::vector<Scope> scopes_;                        ///< of the unit at hand
  std::unordered_map<const char*, uint32_t> files_;  ///< of the unit at hand
  std::unordered_map<const char*, uint32_t> names_;
};

}  // namespace aon::symbols
