#include "writers/symbols/readable_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace aon::symbols {

namespace {

/// Longer names are not read: the demangler needs stack in proportion.
constexpr size_t kMaxMangledBytes = 64 * 1024;

bool begins_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

std::string demangled(std::string_view name) {
  const std::string terminated(name);
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(terminated.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? std::string(text.get()) : terminated;
}

/// At most kMaxNameBytes of `name`, which ends with a whole character of UTF-8.
std::string cut(std::string name) {
  constexpr std::string_view kMore = "...";
  if (name.size() <= kMaxNameBytes) return name;
  size_t end = kMaxNameBytes - kMore.size();
  const auto is_inside = [&] { return (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80; };
  while (end > kMaxNameBytes / 2 && is_inside()) --end;
  name.resize(end);
  return name.append(kMore);
}

/// MODULE::PROCEDURE of `prefix` MODULE `separator` PROCEDURE; empty when it is not that.
std::string fortran_name(std::string_view name, std::string_view prefix,
                         std::string_view separator) {
  if (!begins_with(name, prefix)) return {};
  const std::string_view rest = name.substr(prefix.size());
  const size_t at = rest.find(separator);
  if (at == 0 || at == std::string_view::npos || at + separator.size() == rest.size()) return {};
  return std::string(rest.substr(0, at)) + "::" + std::string(rest.substr(at + separator.size()));
}

std::string whole_name(std::string_view name) {
  if (name.size() > kMaxMangledBytes) return std::string(name.substr(0, kMaxMangledBytes));
  if (begins_with(name, "_Z")) return demangled(name);
  if (std::string made = fortran_name(name, "__", "_MOD_"); !made.empty()) return made;
  if (std::string made = fortran_name(name, "_QM", "P"); !made.empty()) return made;
  return std::string(name);
}

}  // namespace

std::string readable_name(std::string_view name) { return cut(whole_name(name)); }

}  // namespace aon::symbols
