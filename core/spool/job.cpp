#include "core/spool/job.h"
