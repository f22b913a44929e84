#include "core/spool/crc32c.h"
