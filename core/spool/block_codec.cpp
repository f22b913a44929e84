#include "core/spool/block_codec.h"
