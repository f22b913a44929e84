#include "core/base/log.h"
