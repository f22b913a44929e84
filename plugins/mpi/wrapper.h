/// Everything that generated wrappers use. Included by them alone.
#pragma once

#include "mpi/call.h"
#include "mpi/callbacks.h"
#include "mpi/collectives.h"
#include "mpi/communicators.h"
#include "mpi/completion.h"
#include "mpi/files.h"
#include "mpi/groups.h"
#include "mpi/handles.h"
#include "mpi/library.h"
#include "mpi/messages.h"
#include "mpi/windows.h"
