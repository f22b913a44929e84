/// A folder for one test, removed with everything in it at the end.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace aon::launcher {

class TemporaryFolder : public testing::Test {
 protected:
  TemporaryFolder() : folder_(mkdtemp(name_)) {}
  ~TemporaryFolder() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  char name_[32] = "/tmp/aon-launcher-XXXXXX";

 protected:
  std::string folder_;
};

}  // namespace aon::launcher
