/// What the ledger says of an NVTX that we do not, or not wholly, understand; each once.
#pragma once

namespace aon::nvtx {

/// A library has an NVTX without the tables of version 3.
/// Thread: any; may lock.   Signal: safe.
void tell_unknown_version();
/// A library has a payload extension of a version that we do not know.
void tell_unknown_extension();
/// Some schemas are not read: there is no room for them, or it is not clear which one is meant.
void tell_unread_schemas();

}  // namespace aon::nvtx
