/// The fixture of tests that name many files of one temporary folder.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/temporary_folder.h"

namespace aon::test {

class FolderFixture : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return temporary_.path(name); }

 private:
  const TemporaryFolder temporary_;

 protected:
  const std::string folder_ = temporary_.path();
};

}  // namespace aon::test
