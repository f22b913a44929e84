/// The user as the password database knows him, where the environment says nothing (srun
/// --export=NONE). A directory service that hangs is given up: a process of its own asks it, since
/// there is no time limit in getpwuid(), and statically linked programs cannot ask at all.
/// Thread: one.   Cost: none where $HOME is set; a small file for local users, else a process,
/// once.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace aon {

constexpr int kAccountWaitMs = 500;

struct Account {
  std::string name;
  std::string home;
};

/// Of this user.   Errors: kNotFound (he is not in it), kUnavailable (nobody said so in time).
/// The answer is kept, and is that of forks.
const Result<Account>& account();

/// $HOME where it is an absolute path, else that of account().   Errors: those of account().
Result<std::string> home_folder();

/// Asks `words` (nullptr at the end), a program that prints a line of the database and exits with
/// 0, or with 2 where there is none (tests; getent passwd UID).
Result<Account> ask_account(const char* const* words, int wait_ms);

/// The account with number `uid` among lines of the database.   Errors: kNotFound.
Result<Account> find_account(std::string_view lines, unsigned uid);

}  // namespace aon
