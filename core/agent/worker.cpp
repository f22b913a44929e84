#include "core/agent/worker.h"

#include <aon/definition.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "core/agent/bell.h"
#include "core/agent/encode_thread.h"
#include "core/agent/housekeeping.h"
#include "core/agent/server.h"
#include "core/agent/timing.h"
#include "core/base/log.h"
#include "core/cluster/peers.h"
#include "core/spool/agent_gap.h"

namespace aon::agent {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSecondNs = 1000 * kMs;
constexpr int kExitNoSpool = 2;
constexpr int kIdlePeriodMs = 100;
constexpr uint64_t kIdleAfterNs = 10 * kSecondNs;
constexpr uint64_t kIdleWithoutRingsNs = 2 * kSecondNs;  ///< a shell, say, and its programs
/// After SIGTERM: who sends it to the whole job ends the programs as well, and their ends are seen.
constexpr uint64_t kTerminationNs = 2 * kSecondNs;
constexpr uint32_t kMostToldWorkers = 1000;  ///< of one agent, in its definitions

/// The spool folder by its descriptor: the job directory may be moved meanwhile, and another launch
/// have one of its name.
EncoderSettings encoder_settings(const WorkerInputs& inputs) {
  EncoderSettings settings = inputs.config->encoder;
  settings.folder = "/proc/self/fd/" + std::to_string(inputs.folder_fd);
  return settings;
}

/// Everything of one worker, in the order of construction.
class Worker {
 public:
  static Result<std::unique_ptr<Worker>> create(WorkerInputs inputs);
  int run();
  /// To the keeper, which does not wait for ever for the end of the process.
  void tell_done(int exit_code) {
    state_.header().worker_done.store(static_cast<uint32_t>(exit_code) + 1,
                                      std::memory_order_release);  // pairs with agent:done
  }
  /// By a provider, whose thread goes on until the process ends.
  bool is_held() const { return is_held_; }

 private:
  Worker(WorkerInputs inputs, State state, Staging staging);
  void serve();
  void serve_turns();
  clock::TickSource tick_source() const {
    return config_.drain.clock_is_tsc ? clock::TickSource::kTsc : clock::TickSource::kMonotonicRaw;
  }
  void tell_gap();
  void terminate(uint64_t now_ns);
  void remove_socket_files();

  WorkerInputs inputs_;
  const Config& config_;
  State state_;
  Staging staging_;
  FolderSink sink_;
  Inbox inbox_;
  ModeTable modes_;
  StackTable stacks_;
  StuckThreads stuck_;
  ActivityTable activity_;
  Encoder encoder_;
  Drainer drainer_;
  KeeperLink keeper_;
  Housekeeping housekeeping_;
  cluster::Peers peers_;
  BellWatch bell_;
  Server server_;
  EncodeThread encode_thread_;
  UniqueFd signal_fd_;
  uint64_t terminate_at_ns_ = 0;  ///< 0: no SIGTERM
  bool is_terminating_ = false;
  bool is_held_ = false;
};

Result<std::unique_ptr<Worker>> Worker::create(WorkerInputs inputs) {
  auto state = State::map(inputs.state_fd);
  if (!state) return state.error();
  auto staging = Staging::map(inputs.staging_fd, inputs.config->staging_bytes);
  if (!staging) return staging.error();
  return std::unique_ptr<Worker>(new Worker(std::move(inputs), *state, *staging));
}

Worker::Worker(WorkerInputs inputs, State state, Staging staging)
    : inputs_(std::move(inputs)),
      config_(*inputs_.config),
      state_(state),
      staging_(staging),
      sink_(inputs_.folder_fd),
      stuck_(&inbox_),
      encoder_(encoder_settings(inputs_), &state_, &staging_, &sink_, &inbox_, &activity_),
      drainer_(config_.drain, &state_, &staging_, &encoder_.tail(), &inbox_, &modes_),
      keeper_(std::move(inputs_.keeper_socket)),
      housekeeping_(config_, &state_, &inbox_, &modes_, &activity_, &drainer_, &encoder_, &stacks_,
                    &stuck_),
      peers_(config_.job_folder, config_.node, tick_source(),
             [this](const ClockPingDefinition& ping, const std::string& peer) {
               inbox_.define(spool::kNodeProcess, DefinitionType::kClockPing, ping, {peer});
             }),
      bell_(inputs_.bell_fd),
      server_(inputs_.listen_fd, &state_, &drainer_, &keeper_, &housekeeping_,
              following_of(config_.arguments.options)),
      encode_thread_(&encoder_, &state_, config_.arguments.options.flush_ms) {
  drainer_.share_stacks(&stacks_);
  drainer_.use_stuck(&stuck_);
  server_.leave_alone(config_.arguments.avoided);
  server_.is_at(config_.socket_path);
}

/// Where this worker follows another one: for how long nobody took anything.
void Worker::tell_gap() {
  const StateHeader& header = state_.header();
  const uint64_t last_ticks = header.worker_turn_ticks.load(std::memory_order_relaxed);
  if (header.worker_count < 2 || header.worker_count > kMostToldWorkers || last_ticks == 0) return;
  inbox_.define(spool::kNodeProcess, DefinitionType::kEviction,
                spool::agent_gap(header.worker_count, last_ticks, clock::now_ticks(tick_source())));
}

/// One stretch of service: until the launch is over.
void Worker::serve_turns() {
  uint64_t last_bytes_ns = monotonic_ns();
  Beat second(kSecondNs, wall_ns());
  uint64_t period_ns = 0;
  for (;;) {
    if (period_ns != 0) bell_.arm();
    server_.poll(period_ns == 0 ? 0 : until_beat_ns(wall_ns(), period_ns));
    bell_.disarm();
    if (state_.header().spans_nodes.load(std::memory_order_relaxed) != 0) peers_.start();
    const uint64_t now_ns = monotonic_ns();
    state_.header().worker_turn_ns.store(now_ns, std::memory_order_relaxed);
    state_.header().worker_turn_ticks.store(clock::now_ticks(tick_source()),
                                            std::memory_order_relaxed);
    const DrainPass pass = drainer_.drain(now_ns);
    if (pass.bytes != 0) last_bytes_ns = now_ns;
    if (pass.left_init) housekeeping_.process_left_init();
    if (pass.bytes != 0 && drainer_.wants_encoding()) encode_thread_.nudge();
    const bool is_idle =
        now_ns - last_bytes_ns > (pass.has_rings ? kIdleAfterNs : kIdleWithoutRingsNs);
    period_ns = static_cast<uint64_t>(is_idle ? kIdlePeriodMs : pass.period_ms) * kMs;
    if (server_.advance(now_ns)) encode_thread_.flush_soon();
    if (second.is_due(wall_ns())) {
      drainer_.report_counts();
      drainer_.report_open_calls(now_ns);
      housekeeping_.look_at_providers();
    }
    if (!is_terminating_ && server_.has_signal()) terminate(now_ns);
    if (is_terminating_ && !server_.has_live_processes()) return;
    if (server_.is_over(now_ns) || encode_thread_.has_failed()) return;
  }
}

/// What there is gets written at once; the programs still have a moment.
void Worker::terminate(uint64_t now_ns) {
  if (terminate_at_ns_ == 0) {
    terminate_at_ns_ = now_ns + kTerminationNs;
    encode_thread_.flush_soon();
  }
  if (now_ns < terminate_at_ns_ && server_.has_live_processes()) return;
  is_terminating_ = true;
  if (!server_.end_all()) return;
  housekeeping_.note(RecordingNote::kToldToEnd, "");
}

void Worker::serve() {
  serve_turns();
  state_.header().worker_turn_ns.store(0, std::memory_order_relaxed);
}

/// From here on the next rank of this launch starts an agent of its own.
void Worker::remove_socket_files() {
  if (config_.socket_path.empty()) return;
  ::unlink(config_.socket_path.c_str());
  ::unlink((config_.socket_path + ".lock").c_str());
}

int Worker::run() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  signal_fd_.reset(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  server_.watch_signals(signal_fd_.get());
  server_.use_bell(bell_);
  encoder_.resume_tail();
  drainer_.restore();
  server_.adopt(std::move(*inputs_.kept));
  housekeeping_.start();
  encode_thread_.start();
  bell_.start();
  tell_gap();
  bool are_files_removed = false;
  for (;;) {
    serve();
    if (encode_thread_.has_failed()) {
      is_held_ = !housekeeping_.stop();  // else it would find what is gone
      return kExitNoSpool;
    }
    housekeeping_.settle();
    encode_thread_.flush_all();
    server_.poll(0);
    if (!is_terminating_ && !server_.is_over(monotonic_ns())) continue;
    if (are_files_removed) break;
    // A rank may have connected just before; it is served like any other.
    remove_socket_files();
    are_files_removed = true;
    server_.poll(0);
    if (is_terminating_ || server_.is_over(monotonic_ns())) break;
  }
  bell_.stop();
  peers_.stop();
  is_held_ = !housekeeping_.stop();
  encode_thread_.stop();
  return 0;
}

}  // namespace

int run_worker(WorkerInputs inputs) {
  auto worker = Worker::create(std::move(inputs));
  if (!worker) {
    AON_LOG_ERROR("%s", worker.error().message.c_str());
    return 1;
  }
  const int exit_code = (*worker)->run();
  (*worker)->tell_done(exit_code);
  // The caller ends the process; until then that thread finds all where it was.
  if ((*worker)->is_held()) static_cast<void>(worker->release());
  return exit_code;
}

}  // namespace aon::agent
