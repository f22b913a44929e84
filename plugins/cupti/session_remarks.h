/// What the ledger is told of the start of the recording and of what the program did to it.
/// Thread: as tell() of state.h: any; locks.   Cost: a definition.
#pragma once

#include <aon/definition.h>

#include "cupti/library.h"
#include "cupti/settings.h"

namespace aon::cupti {

/// `missing`: of load(); null: nothing.
void tell_library(const CuptiLibrary& library, const char* missing);
void tell_settings(const Settings& settings);
/// `owner`: "" where CUPTI does not tell.
void tell_owner(ProviderState state, const char* owner);
void tell_version();
/// Said from the first record on, for who is killed cannot say it, and taken back at the end.
void tell_unread(bool is_unread);
void tell_skipped_flush();
/// Of releases before which nothing was flushed, one was the last of its context.
void tell_skipped_release();

}  // namespace aon::cupti
