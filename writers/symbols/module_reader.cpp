#include "writers/symbols/module_reader.h"

#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/base/file.h"
#include "writers/symbols/debug_files.h"
#include "writers/symbols/function_ranges.h"
#include "writers/symbols/readable_name.h"
#include "writers/symbols/symbol_table.h"

namespace aon::symbols {

namespace {

constexpr size_t kBufferBytes = 256 * 1024;
constexpr std::string_view kDeletedSuffix = " (deleted)";

/// An offset that is loaded, and where.
struct Place {
  uint64_t address = 0;
  uint32_t position = 0;
  uint32_t symbol = 0;
};

/// The kernel's own library, from this process: the same when its build-id is. Its section headers
/// are the last thing in it.
Result<ElfFile> open_vdso() {
  const auto* begin = reinterpret_cast<const uint8_t*>(getauxval(AT_SYSINFO_EHDR));
  if (begin == nullptr) return Error{Code::kNotFound, "[vdso]: this process has none"};
  ElfW(Ehdr) header;
  std::memcpy(&header, begin, sizeof(header));
  const size_t bytes = header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
  return ElfFile::from_memory({begin, begin + bytes}, "[vdso]");
}

Error build_id_differs(const std::string& path, const ElfFile& file, const std::string& wanted) {
  const std::string has = file.build_id().empty() ? "none" : hex(file.build_id());
  return {Code::kInvalid, path + ": build-id differs: the file has " + has + ", what ran had " +
                              hex(wanted) + "; put that file back, or its copy " +
                              "under .build-id of the debug directory"};
}

/// The file that ran: the one at its path, or what has its build-id elsewhere.
Result<ElfFile> open_module(const ModuleReference& module, const DebugSearch& search) {
  if (module.path == "[vdso]") {
    Result<ElfFile> vdso = open_vdso();
    if (vdso && (module.build_id.empty() || vdso->build_id() != module.build_id))
      return Error{Code::kInvalid, "[vdso]: of another kernel; resolve on the node that ran it"};
    return vdso;
  }
  std::string path = module.path;
  const bool is_deleted = path.ends_with(kDeletedSuffix);
  if (is_deleted) path.resize(path.size() - kDeletedSuffix.size());
  if (path.empty() || path.starts_with('[') || path.starts_with("//anon"))
    return Error{Code::kInvalid, module.path + ": is no file"};
  std::optional<Error> error;
  if (is_deleted && module.build_id.empty()) {
    error = {Code::kNotFound, path + ": was deleted, and its build-id is not known"};
  } else {
    Result<ElfFile> file = ElfFile::open(path);
    if (file && (module.build_id.empty() || file->build_id() == module.build_id)) return file;
    error = file ? build_id_differs(path, *file, module.build_id) : file.error();
  }
  if (auto found = find_program(module.build_id, search); found) return std::move(*found);
  return *error;
}

/// One module, from opening to the last line.
class ModuleReader {
 public:
  ModuleReader(std::span<const uint64_t> offsets, const ResolverOptions& options, Reply* reply)
      : offsets_(offsets), search_(options.search), options_(options), reply_(reply) {}

  void run(const ModuleReference& module);

 private:
  void load_symbols();
  void place_offsets();
  void tell_names();
  void tell_begin(const Place& place);
  void tell_lines();
  void note(std::string_view remark);

  std::span<const uint64_t> offsets_;
  const DebugSearch& search_;
  const ResolverOptions& options_;
  Reply* reply_;
  std::optional<ElfFile> file_;
  std::optional<ElfFile> debug_file_;
  std::optional<ElfFile> packed_;
  SymbolTable table_;
  FunctionRanges unnamed_;  ///< of a stripped file
  std::vector<Place> places_;
  std::unordered_map<uint32_t, uint32_t> names_;  ///< of symbols, numbers of texts
  std::string remark_;
};

void ModuleReader::run(const ModuleReference& module) {
  Result<ElfFile> file = open_module(module, search_);
  if (!file) {
    reply_->failed(file.error());
    return;
  }
  file_ = std::move(*file);
  load_symbols();
  place_offsets();
  tell_names();
  if (options_.wants_lines) tell_lines();
  if (!remark_.empty()) reply_->text(Word::kRemark, remark_);
  reply_->end();
}

void ModuleReader::note(std::string_view remark) {
  if (!remark_.empty()) remark_ += "; ";
  remark_ += remark;
}

void ModuleReader::load_symbols() {
  const bool has_table = file_->section(".symtab") != nullptr;
  const bool has_lines =
      file_->section(".debug_info") != nullptr || file_->section(".zdebug_info") != nullptr;
  std::string source = has_table ? file_->path() : file_->path() + " (.dynsym)";
  table_.add(*file_);
  if (!has_table || (options_.wants_lines && !has_lines)) {
    debug_file_ = find_debug_file(*file_, search_);
  }
  if (debug_file_ && !has_table) {
    table_.add(*debug_file_);
    source = debug_file_->path();
  } else if (!has_table) {
    Result<ElfFile> packed = unpack_debugdata(*file_);
    if (packed) {
      packed_ = std::move(*packed);
      table_.add(*packed_);
      source = packed_->path();
    } else if (packed.error().code != Code::kNotFound) {
      note(packed.error().message);
    }
  }
  table_.add_plt(*file_);
  table_.finish();
  if (!has_table && !debug_file_ && !packed_) {
    unnamed_.add(*file_);
    note(file_->path() +
         (table_.symbol_count() == 0
              ? ": stripped, has no names; install its debug file, or build without -s"
              : ": stripped, only exported functions have names; install its debug file"));
  }
  reply_->text(Word::kSource, source);
}

void ModuleReader::place_offsets() {
  places_.reserve(offsets_.size());
  for (uint32_t i = 0; i < offsets_.size(); ++i) {
    const std::optional<uint64_t> address = file_->address_of(offsets_[i]);
    if (address) places_.push_back({*address, i, table_.find(*address)});
  }
  std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
    return std::pair(a.address, a.position) < std::pair(b.address, b.position);
  });
}

void ModuleReader::tell_names() {
  for (const Place& place : places_) {
    if (place.symbol == SymbolTable::kNone) {
      tell_begin(place);
      continue;
    }
    auto [name, is_new] = names_.try_emplace(place.symbol, 0);
    if (is_new) name->second = reply_->strings().number(readable_name(table_.name(place.symbol)));
    const LineFrame frame{name->second, 0, 0, false};
    reply_->frames(place.position, {&frame, 1});
  }
  reply_->flush();
}

void ModuleReader::tell_begin(const Place& place) {
  const std::optional<uint64_t> begin = unnamed_.begin_of(place.address);
  const std::optional<uint64_t> offset = begin ? file_->offset_of(*begin) : std::nullopt;
  if (offset) reply_->begin(place.position, *offset);
}

void ModuleReader::tell_lines() {
  Result<Lines> lines = Lines::open(*file_, &reply_->strings());
  if (!lines && debug_file_) lines = Lines::open(*debug_file_, &reply_->strings());
  if (!lines) {
    note("no lines: " + lines.error().message +
         (lines.error().code == Code::kUnavailable ? "; build with -g or install its debug file"
                                                   : ""));
    return;
  }
  std::vector<uint64_t> addresses;
  addresses.reserve(places_.size());
  for (const Place& place : places_) addresses.push_back(place.address);
  std::vector<LineFrame> frames;
  lines->resolve(addresses, [&](size_t index, std::span<const LineFrame> found) {
    const Place& place = places_[index];
    frames.assign(found.begin(), found.end());
    if (place.symbol != SymbolTable::kNone) frames.back().function = names_[place.symbol];
    if (frames.back().function == 0 && frames.size() == 1 && frames.back().file == 0) return;
    reply_->frames(place.position, frames);
  });
}

}  // namespace

void Reply::put(uint32_t word) {
  const char* bytes = reinterpret_cast<const char*>(&word);
  buffer_.insert(buffer_.end(), bytes, bytes + sizeof(word));
}

void Reply::send_texts() {
  while (sent_count_ < strings_.count()) {
    const std::string_view text = strings_.text(++sent_count_);
    put(static_cast<uint32_t>(Word::kText));
    put(static_cast<uint32_t>(text.size()));
    buffer_.insert(buffer_.end(), text.begin(), text.end());
  }
}

void Reply::frames(uint32_t position, std::span<const LineFrame> frames) {
  send_texts();
  put(static_cast<uint32_t>(Word::kFrames));
  put(position);
  put(static_cast<uint32_t>(frames.size()));
  for (const LineFrame& frame : frames) {
    put(frame.function);
    put(frame.file);
    put((frame.line & ~kInlinedBit) | (frame.is_inlined ? kInlinedBit : 0));
  }
  if (buffer_.size() >= kBufferBytes) flush();
}

void Reply::begin(uint32_t position, uint64_t offset) {
  put(static_cast<uint32_t>(Word::kBegin));
  put(position);
  put(static_cast<uint32_t>(offset));
  put(static_cast<uint32_t>(offset >> 32));
}

void Reply::text(Word word, std::string_view text) {
  const uint32_t number = strings_.number(text);
  send_texts();
  put(static_cast<uint32_t>(word));
  put(number);
}

void Reply::failed(const Error& error) {
  const uint32_t number = strings_.number(error.message);
  send_texts();
  put(static_cast<uint32_t>(Word::kFailed));
  put(static_cast<uint32_t>(error.code));
  put(number);
  end();
}

void Reply::end() {
  put(static_cast<uint32_t>(Word::kEnd));
  flush();
}

void Reply::flush() {
  if (!write_all(fd_, buffer_.data(), buffer_.size())) _exit(1);  // nobody listens any more
  buffer_.clear();
}

void read_module(const ModuleReference& module, std::span<const uint64_t> offsets,
                 const ResolverOptions& options, Reply* reply) {
  if (!options.search.allows_debuginfod) unsetenv("DEBUGINFOD_URLS");  // also for libdw
  ModuleReader(offsets, options, reply).run(module);
}

}  // namespace aon::symbols
