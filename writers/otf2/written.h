/// What a share hands over of the locations that it has written event files for.
/// Owner: Otf2Writer.   Thread: one.
#pragma once

#include <deque>
#include <vector>

#include "writers/otf2/definitions.h"
#include "writers/writer.h"

namespace aon::writers::otf2 {

/// A location of the model by its index, one that was added beside it with all its fields.
void save_written(const Model& model, const WrittenLocation& written, StateOut* out);

/// Adds one to `written`; where it is none of the model's it is kept in `beside`.
/// Errors: kDamaged.
Status load_written(StateIn* in, const Model& model, std::deque<Location>* beside,
                    std::vector<WrittenLocation>* written);

}  // namespace aon::writers::otf2
