// aon-node: the service of a node (docs/node-service.md). Optional: without it every agent reads
// what its user may read.
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "core/base/descriptors.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/provider/names.h"
#include "core/service/privileges.h"
#include "core/service/server.h"

namespace aon::service {
namespace {

constexpr int kExitOptions = 2;
constexpr int kExitBusy = 3;  ///< another service serves; the unit does not try again
constexpr rlim_t kDescriptors = 4096;

struct Options {
  std::string socket = kSocketPath;
  std::string folder;  ///< of providers
  std::vector<std::string> providers = {"energy", "membw", "network"};
  bool in_background = false;
  bool is_end = false;
};

int fail(const std::string& text) {
  std::fprintf(stderr, "aon-node: %s\n", text.c_str());
  return 1;
}

std::string own_providers() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return provider::provider_folder((self.parent_path() / "../lib").lexically_normal().string());
}

void add_providers(const Options& options, Publisher* publisher) {
  for (const std::string& name : options.providers) {
    const auto path = provider::provider_path(options.folder, name);
    auto provider = provider::Provider::load(path, AON_HOST_NODE, options.folder);
    if (provider) {
      publisher->add(std::move(*provider));
    } else {
      AON_LOG_WARNING("%s: %s", name.c_str(), provider.error().message.c_str());
    }
  }
}

/// Nobody waits for a child of ours: the parent ends when this one listens.
void leave_the_parent() {
  const pid_t child = ::fork();
  if (child != 0) ::_exit(child < 0 ? 1 : 0);
  ::setsid();
  std::FILE* const streams[] = {::freopen("/dev/null", "r", stdin),
                                ::freopen("/dev/null", "w", stdout),
                                ::freopen("/dev/null", "w", stderr)};
  static_cast<void>(streams);
}

/// One for each reader; a hard limit below is the limit then.
void raise_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min(std::max(limit.rlim_cur, kDescriptors), limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Any user sees the numbers of the threads in it.
Result<CrashLog> log_for_everybody() {
  const Result<std::string> mounts = read_text_file("/proc/self/mountinfo");
  if (!mounts || processes_are_hidden(*mounts))
    return Error{Code::kUnavailable, "/proc hides processes of other users (hidepid)"};
  return CrashLog::open();
}

int serve(const Options& options) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::umask(022);
  auto listener = listen_at(options.socket);
  // Another one serves already: what was asked for is there.
  if (!listener && listener.error().code == Code::kBusy && options.in_background) return 0;
  if (!listener) {
    fail(listener.error().message);
    return listener.error().code == Code::kBusy ? kExitBusy : 1;
  }
  if (options.in_background) leave_the_parent();
  note_owner(*listener);
  raise_descriptors();
  if (Status status = drop_privileges(); !status) return fail(status.error().message);
  auto publisher = Publisher::create();
  if (!publisher) return fail(publisher.error().message);
  add_providers(options, publisher->get());
  auto log = log_for_everybody();
  if (!log) AON_LOG_WARNING("crashes are not told: %s", log.error().message.c_str());
  const UniqueFd stop(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!stop) return fail("no signalfd");
  Server server(std::move(*listener), publisher->get(),
                log ? std::optional<CrashLog>(std::move(*log)) : std::nullopt);
  server.run(stop.get());
  ::unlink(options.socket.c_str());  // not ours to remove when root made the folder
  return 0;
}

int run(int argc, char** argv) {
  Options options;
  options.folder = own_providers();
  CLI::App app{"The service of a node: reads its metrics once, for the agents of all users.",
               "aon-node"};
  app.set_version_flag("--version", "aon " AON_VERSION);
  app.add_option("--socket", options.socket, "where agents find it (default /run/aon/node.sock)")
      ->type_name("PATH");
  app.add_option("--providers", options.providers,
                 "what it reads, separated by commas (default energy,membw,network)")
      ->delimiter(',')
      ->type_name("LIST");
  app.add_option("--provider-folder", options.folder, "installed providers")->type_name("DIR");
  app.add_flag("--background", options.in_background,
               "return when it listens, or when another one does already");
  app.add_flag("--end", options.is_end, "end the service, if one serves");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitOptions;
  }
  set_log_name("aon-node");
  if (!options.is_end) {
    const bool is_chosen = app.count("--providers") != 0;  // of the default what is there
    const Status names =
        is_chosen ? provider::check_node_names(options.providers, options.folder) : Status();
    if (!names) {
      fail(names.error().message);
      return kExitOptions;
    }
    return serve(options);
  }
  const Status status = end_service(options.socket);
  return status ? 0 : fail(status.error().message);
}

}  // namespace
}  // namespace aon::service

int main(int argc, char** argv) {
  aon::hold_standard_descriptors();
  return aon::service::run(argc, argv);
}
