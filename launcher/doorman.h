/// The process that stands at the socket of a job step where no aon-run was asked for (TaskProlog):
/// no agent runs and no directory is made until a program of the step records something.
///
///     TaskProlog --aon-task--> socket bound, doorman started (or told of one more task)
///     program ----Hello-----> doorman: accepts, looks, forks
///         the fork: environment of the program -> its launch -> job directory -> agent of the
///         launch, started or joined ----HandOver, the connection----> agent
///     program <---Welcome---------------------------------------------- agent
///     last task ended ------> doorman removes the socket and ends; agents end by themselves
///
/// The launch is the program's own, so that two mpirun of one batch script are two launches, and
/// the ranks of one mpirun on all its nodes are one.
/// Thread: one; a fork for each program, so that a disk that hangs delays nobody else.
/// Cost: about 1 MiB and no CPU while nobody calls.   Errors: the program runs unrecorded.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/base/options.h"
#include "core/base/result.h"
#include "launcher/agent_link.h"
#include "launcher/environment.h"
#include "launcher/installation.h"
#include "launcher/launch_id.h"

namespace aon::launcher {

/// Starts the doorman behind `link`, which has a listener and its lock, in a session of its own.
/// It watches `task`. Returns when it has left this process's group and descriptors.
/// Errors: kUnavailable: no process, or no way to see the task's end; nothing is left at the
/// socket.
Status start_doorman(AgentLink link, const Installation& files, pid_t task);

/// The directory that the user asked for; "" for none. A task that is started within another one
/// finds in AON_OUTPUT what the TaskProlog has put there (AON_DOOR_GAVE): only another value is the
/// user's.
std::string wanted_output(const Environment& environment);

/// Where the files of a launch go: where the user wants them, else aon-JOB.STEP for a step of
/// srun, aon-JOB-ID for another launch of the job, in the folder the job was submitted from.
std::string directory_in_job(const Launch& launch, const Environment& environment);

/// What /proc/PID/environ holds, as environ has it; empty when it cannot be read.
std::vector<std::string> environment_of(pid_t pid);

/// What this process's environment asks for, and what in it is wrong: that is left out, a name of
/// a provider alone out of its list. Names of events that are none stay in the options, and
/// the provider tells them. A variable that is no setting, but near one, is wrong, too.
struct Wanted {
  Options options;
  std::vector<WrongSetting> wrong;
  std::vector<std::string> unknown_events;  ///< as aon-run would say it
};
Wanted options_of_environment(const Installation& files);

/// The variables for a program. One whose value is wrong stays as it is, so that whoever reads the
/// program's environment finds the same.
ProgramEnvironment environment_for(const Wanted& wanted, const Installation& files,
                                   const std::string& socket, const std::string& output_dir,
                                   const Environment& environment);

}  // namespace aon::launcher
