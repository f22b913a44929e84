#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "tools/command.h"
#include "tools/machine_check.h"

namespace aon::tools {
namespace {

const char* word_of(Ability ability) {
  switch (ability) {
    case Ability::kYes:
      return "yes";
    case Ability::kLimited:
      return "limited";
    case Ability::kNo:
      return "no";
  }
  return "no";
}

void print_text(const std::vector<Check>& checks) {
  for (const Check& check : checks) {
    fmt::print("{:<8}{:<30}{}\n", word_of(check.ability), check.name, check.detail);
    if (!check.remedy.empty()) fmt::print("{:<8}{:<30}to enable: {}\n", "", "", check.remedy);
  }
}

void print_json(const std::vector<Check>& checks) {
  nlohmann::json document = nlohmann::json::array();
  for (const Check& check : checks) {
    document.push_back({{"name", check.name},
                        {"state", word_of(check.ability)},
                        {"detail", check.detail},
                        {"remedy", check.remedy}});
  }
  std::cout << document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

}  // namespace

int doctor(bool as_json) {
  std::vector<Check> checks = check_system();
  for (const auto& more : {check_libraries(), check_cupti_holders(), check_providers()}) {
    checks.insert(checks.end(), more.begin(), more.end());
  }
  if (as_json) {
    print_json(checks);
  } else {
    print_text(checks);
  }
  return kExitDone;
}

}  // namespace aon::tools
