/// The provider ABI around a Session; each provider of this folder is one file that includes this
/// one and exports aon_provider_v1.
/// Thread: the provider's.
#pragma once

#include <aon/provider.h>

#include <memory>

#include "node/session.h"

struct aon_provider {
  std::unique_ptr<aon::node::Session> session;
};

namespace aon::node {

/// aon_provider_api::start of the provider whose session is `T`.
template <class T>
aon_status start_provider(aon_core* core, const aon_core_api* api, aon_host, const char*,
                          aon_provider** self) {
  Output output(core, api);
  auto session = std::make_unique<T>(real_system(), output);
  const StateText state = session->start(api->now_ticks(core));
  output.set_state(AON_PROCESS_NODE, state);
  if (state.state == AON_STATE_OFF) return AON_UNAVAILABLE;
  *self = new aon_provider{std::move(session)};
  return AON_OK;
}

template <class T>
constexpr aon_provider_api provider_table(const char* name, const char* description,
                                          uint32_t tick_period_ms) {
  return {
      .abi = AON_PROVIDER_ABI,
      .size = sizeof(aon_provider_api),
      .hosts = AON_HOST_NODE,
      .tick_period_ms = tick_period_ms,
      .name = name,
      .description = description,
      .start = start_provider<T>,
      .flush = [](aon_provider* p) { p->session->finish(); },
      .stop = [](aon_provider* p) { delete p; },
      .process_started = [](aon_provider* p, uint32_t process, int32_t pid,
                            int32_t) { p->session->process_started(process, pid); },
      .process_ended = [](aon_provider* p,
                          uint32_t process) { p->session->process_ended(process); },
      .tick = [](aon_provider* p, uint64_t now_ticks) { p->session->tick(now_ticks); },
      .message = nullptr,
  };
}

}  // namespace aon::node
