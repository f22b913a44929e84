#include "core/spool/files.h"
