#include "core/spool/stream_reader.h"
