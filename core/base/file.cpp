#include "core/base/file.h"
