#include "core/spool/block_reader.h"
