/// traces.marker: the markers of an archive as OTF2 has them, and what of them had no room. An
/// archive without markers has no such file, as most archives of others.
/// Owner: Otf2Writer.   Thread: one.   Cost: below 1 us a marker.
#pragma once

#include <otf2/otf2.h>

#include <cstdint>
#include <map>
#include <string>

#include "core/base/result.h"
#include "writers/otf2/definitions.h"
#include "writers/otf2/markers.h"

namespace aon::writers::otf2 {

/// Writes `markers` into the archive, whose global definitions are `definitions`, written already.
/// Times outside of `range`, where otf2-marker lets nobody add one, are moved to its border.
Status write_markers(OTF2_Archive* archive, const Markers& markers, const TimeRange& range,
                     const GlobalDefinitions& definitions);

/// Of each category, those that were left out; categories without are not there.
std::map<std::string, uint64_t> left_out_counts(const Markers& markers);

}  // namespace aon::writers::otf2
