#include "core/spool/process_index.h"
