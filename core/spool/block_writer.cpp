#include "core/spool/block_writer.h"
