#include "core/clock/clock_map.h"
