/// Where failures inside OTF2 end. Its error callback throws them through it (archive.cpp has why),
/// so whatever calls OTF2 is called by a guarded writer.
/// Thread: one.   Cost: none as long as nothing fails.
#pragma once

#include <otf2/otf2.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "writers/writer.h"

namespace aon::writers::otf2 {

/// What OTF2 said, most often the path of a file, and the reason.
class Failure : public std::runtime_error {
 public:
  Failure(OTF2_ErrorCode code, const std::string& said);
};

/// `writer` with its Failures as Status. After one it is not called any more.
/// Errors: kIo, and those of `writer`.
std::unique_ptr<Writer> guard(std::unique_ptr<Writer> writer);

}  // namespace aon::writers::otf2
