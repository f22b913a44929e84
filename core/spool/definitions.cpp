#include "core/spool/definitions.h"
