/// A service that root started keeps two rights and nothing else of root: CAP_PERFMON (events of
/// the whole node) and CAP_SYSLOG (the kernel's log). Its user is `nobody` from then on, so
/// it can open no file of anybody.
/// Thread: before there is a second one.   Errors: kUnavailable; the caller ends then.
#pragma once

#include "core/base/result.h"

namespace aon::service {

/// Does nothing for a service that root has not started.
Status drop_privileges();

}  // namespace aon::service
