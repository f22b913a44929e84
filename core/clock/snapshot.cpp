#include "core/clock/snapshot.h"
