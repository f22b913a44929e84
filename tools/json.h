/// What a ledger says, where it says it: any file may lack anything.
/// Thread: any.   Cost: a search by name.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace aon::tools {

/// The member `key`; null where there is none.
inline const nlohmann::json& member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

/// A text; "" where there is none.
inline std::string text_of(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

}  // namespace aon::tools
