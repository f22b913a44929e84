/// The provider ABI: all that a provider (a plugin that watches something) and the core share. C11
/// and C++20.
///
/// A provider is a shared object that exports ONE const data symbol, `aon_provider_v1`; the name
/// carries the major version. It links against nothing of ours. Core and provider give each other a
/// table of functions that begins with `abi, size`. Rules of both tables:
///   1. a table only grows at its end; a change of anything else is a new symbol, aon_provider_v2;
///   2. `size` is sizeof as its owner compiled it; the other side reads no further;
///   3. a provider with fewer bytes than AON_PROVIDER_SIZE_V1 is refused, one with more is welcome;
///   4. no memory is freed across the border, no exception crosses it.
///
/// A provider runs in a host, on the node: aon-agent or aon-node loads it. The process host and all
/// that is "reserved" below are for later: no host loads it in this version. What runs in the
/// application is a shim of its own (aon/writer.h).
///
///     loaded --start: AON_OK--> running --stop--> stopped       (never unloaded: RTLD_NODELETE)
///        \--start: anything else--> off, with the reason given to set_state()
///
/// Thread: in the node host the agent calls every function of a provider from one thread, which
/// drains nothing; a call should end within 10 ms. Reserved: in the process host start, flush and
/// stop from one thread at a time, message from any.
/// Example: plugins/example/example.c. Checked by: tests/abi/provider.
#ifndef AON_PROVIDER_H_
#define AON_PROVIDER_H_

#include <stddef.h>
#include <stdint.h>

#define AON_PROVIDER_ABI 1u          /* equal on both sides, or the provider is refused */
#define AON_PROVIDER_SIZE_V1 88u     /* bytes of aon_provider_api that every provider has */
#define AON_CORE_SIZE_V1 80u         /* bytes of aon_core_api that every core has */
#define AON_NO_ID 0xffffffffu        /* define_metric, intern: refused */
#define AON_PROCESS_NODE 0xffffffffu /* as a process number: the node itself */
#define AON_PROCESS_SELF 0xfffffffeu /* as a process number: reserved, the one we are in */
#define AON_CALL_SAMPLES 0xfffeu     /* put_record: the stream of call samples of a process */
#define AON_MESSAGE_BYTES 4096u      /* reserved: of one message, at most */
#define AON_MESSAGE_DESCRIPTORS 8u   /* reserved: passed with one, at most */

typedef enum aon_status {
  AON_OK = 0,
  AON_UNAVAILABLE = 1, /* a normal result: no device, no permission; set_state() says the remedy */
  AON_BUSY = 2,        /* somebody else holds it, try later */
  AON_INVALID = 3,     /* a wrong argument or option */
  AON_FAILED = 4       /* anything else */
} aon_status;

/* Where a provider runs; `hosts` of a provider is a sum of them. AON_HOST_PROCESS is reserved. */
typedef enum aon_host { AON_HOST_PROCESS = 1, AON_HOST_NODE = 2 } aon_host;

/* Values of aon::ProviderState (definition.h). */
typedef enum aon_state { AON_STATE_OFF = 0, AON_STATE_ON = 1, AON_STATE_DEGRADED = 2 } aon_state;

/* Values of aon::MetricMode (definition.h). */
typedef enum aon_metric_mode {
  AON_METRIC_ACCUMULATED = 0, /* a count that never decreases: from 0 at process_started() or, of
                               * the node, at start(). When the agent had to start its worker
                               * again the core goes on from the last value. */
  AON_METRIC_ABSOLUTE = 1     /* a value of its own each time: watts, bytes in use */
} aon_metric_mode;

typedef enum aon_log_level {
  AON_LOG_ERROR = 0,
  AON_LOG_WARNING = 1,
  AON_LOG_INFO = 2,
  AON_LOG_DEBUG = 3
} aon_log_level;

struct aon_core;     /* owned by the core; lives longer than every provider */
struct aon_provider; /* owned by the provider, from start() to stop() */

/* A thread as it was interrupted; x86-64. */
struct aon_stack_copy {
  uint64_t bx, bp, sp, r12, r13, r14, r15, ip;
  const void* bytes; /* of the stack, from sp on */
  uint64_t byte_count;
};

#define AON_STACK_FRAMES 62u /* of one noted stack, at most */

/* What a timer in a process noted. Without frames: only losses are told. */
struct aon_noted_stack {
  uint64_t raw_ns; /* CLOCK_MONOTONIC_RAW */
  int32_t tid;
  uint32_t frame_count;
  uint64_t lost_count;               /* of the same thread slot, since the last one */
  uint64_t frames[AON_STACK_FRAMES]; /* innermost first */
};

/* What a provider may call. Every string is UTF-8, ends with NUL and is copied before the call
 * returns. No pointer of this table is null: what a host cannot do answers AON_UNAVAILABLE,
 * AON_NO_ID, NULL or 0. */
struct aon_core_api {
  uint32_t abi;  /* AON_PROVIDER_ABI */
  uint32_t size; /* of this table as the core was compiled */

  /* Ticks of the clock that records use. Thread: any.   Signal: safe. */
  uint64_t (*now_ticks)(struct aon_core*);

  /* Id of the metric `name` of `process`; the same name gives the same id again. `unit` is UCUM or
   * plain ("ns", "By", "W", "1"). Thread: the provider's.   Signal: no.
   * Errors: AON_NO_ID when `process` is not known or there is no room. */
  uint32_t (*define_metric)(struct aon_core*, uint32_t process, const char* name, const char* unit,
                            const char* description, aon_metric_mode mode);

  /* One value of a metric. enabled_ns and running_ns say for how long the counter existed and for
   * how long it counted (multiplexing); `value` is scaled already. Both 0: not multiplexed.
   * Thread: the provider's.   Signal: no.   Errors: dropped and counted. */
  void (*sample)(struct aon_core*, uint32_t process, uint32_t metric, uint64_t ticks, double value,
                 uint64_t enabled_ns, uint64_t running_ns);

  /* State of this provider in `process` (or on the node), for the ledger. `reason` says in one line
   * what is missing, `remedy` is the exact command or option that helps; "" where there is none. */
  void (*set_state)(struct aon_core*, uint32_t process, aon_state state, const char* reason,
                    const char* remedy);

  /* Reserved, process host: id of the region `name` for records. All hosts say AON_NO_ID today. */
  uint32_t (*intern)(struct aon_core*, const char* name);

  /* Reserved, process host: room for one record of 1 to 4 slots (aon/record.h) in the calling
   * thread's ring, to be filled and committed by the same thread before it does anything else here.
   * Signal: safe.
   * Errors: NULL, always in this version. */
  void* (*reserve)(struct aon_core*, uint32_t slot_count);
  void (*commit)(struct aon_core*, void* record);

  /* One line for the agent's log, rate limited; AON_LOG_INFO with `aon-run -v` only, no DEBUG. */
  void (*log)(struct aon_core*, aon_log_level level, const char* text);

  /* Reserved: sends to the other half, from the process (AON_PROCESS_SELF) to its node, from the
   * node to one process. Descriptors are duplicated on the way; the sender keeps its own.
   * Errors: AON_UNAVAILABLE, always in this version. Later also AON_BUSY when the channel is full,
   * AON_INVALID over the limits above. */
  aon_status (*send_message)(struct aon_core*, uint32_t process, const void* data,
                             uint32_t data_bytes, const int* descriptors,
                             uint32_t descriptor_count);

  /* A definition of aon/definition.h about a process: kMapping, kCallPaths, kTaskName, kSampling
   * or kJitSymbol; of the node itself: kDevice. Node host.   Thread: the provider's.
   * Errors: AON_INVALID for any other type, or above 128 KiB. */
  aon_status (*define)(struct aon_core*, uint32_t process, uint32_t type, const void* payload,
                       uint32_t payload_bytes);

  /* A record of one or two slots (aon/record.h), ticks in order, into `stream` of a process:
   * AON_CALL_SAMPLES. Node host.   Thread: the provider's.
   * Errors: AON_BUSY when there is no room, counted; AON_INVALID for any other stream or record. */
  aon_status (*put_record)(struct aon_core*, uint32_t process, uint32_t stream, const void* record);

  /* Says that the provider itself lost `count` records of a stream between these times. */
  void (*add_lost)(struct aon_core*, uint32_t process, uint32_t stream, uint64_t count,
                   uint64_t first_ticks, uint64_t last_ticks);

  /* CPU time that watching cost the processes since the last call; the budget counts it. What the
   * provider itself runs for is known. Node host. */
  void (*add_cost)(struct aon_core*, uint64_t cost_ns);

  /* Call chain of a thread of `process` from a copy of its registers and of the top of its stack,
   * by the call frame information of the files that are mapped there. Fills at most `capacity`
   * addresses, innermost first, callers as return addresses, and returns how many; 0 where this
   * machine's unwinder does not exist. Node host.   Cost: about 1 us a frame. */
  uint32_t (*unwind)(struct aon_core*, uint32_t process, const struct aon_stack_copy*,
                     uint64_t* frames, uint32_t capacity);

  /* Takes the oldest stack of a thread of `process` that its timer noted, from all its threads in
   * turn; 0: there is none. Node host. */
  uint32_t (*take_stack)(struct aon_core*, uint32_t process, struct aon_noted_stack* stack);

  /* Timers of `process` are to note so many stacks per second of CPU time of each thread. Node
   * host. */
  void (*set_stack_rate)(struct aon_core*, uint32_t process, uint32_t rate_hz);
};

/* Members that came later need not be named in C++ either. */
#ifdef __cplusplus
#define AON_PROVIDER_OPTIONAL_ = nullptr
#else
#define AON_PROVIDER_OPTIONAL_
#endif

/* What a provider offers. Functions marked (null) may be NULL. */
struct aon_provider_api {
  uint32_t abi;            /* AON_PROVIDER_ABI */
  uint32_t size;           /* of this table as the provider was compiled */
  uint32_t hosts;          /* sum of aon_host */
  uint32_t tick_period_ms; /* node host: how often tick() is wanted; 0 never */
  const char* name; /* "perf": [a-z0-9_-], at most 31 bytes; also in options and the ledger */
  const char* description; /* one line for `aon doctor` */

  /* Succeeds whole, or changes nothing (*self stays untouched) and has said why by set_state().
   * `config` is "key=value" lines, the same for all providers; see aon/provider_config.h. */
  aon_status (*start)(struct aon_core*, const struct aon_core_api*, aon_host host,
                      const char* config, struct aon_provider** self);
  /* (null) Hands over what a driver still buffers; bounded time. */
  void (*flush)(struct aon_provider*);
  /* On return nothing of this provider runs or will run. */
  void (*stop)(struct aon_provider*);

  /* (null) Node host: a process attached. `rank` is -1 without one. Numbers are never reused. */
  void (*process_started)(struct aon_provider*, uint32_t process, int32_t pid, int32_t rank);
  /* (null) Node host: it has ended; its pid may belong to another process already. */
  void (*process_ended)(struct aon_provider*, uint32_t process);
  /* (null) Node host: every tick_period_ms, late under load, never twice for one period. */
  void (*tick)(struct aon_provider*, uint64_t now_ticks);
  /* (null) Reserved, never called: from the other half. The receiver closes the descriptors. */
  void (*message)(struct aon_provider*, uint32_t process, const void* data, uint32_t data_bytes,
                  const int* descriptors, uint32_t descriptor_count);
  /* (null) Node host: the budget wants add_cost() to come to 1/divisor of what it is at 1 (a power
   * of two), 0: to nothing. */
  void (*throttle)(struct aon_provider*, uint32_t divisor) AON_PROVIDER_OPTIONAL_;
};

#ifdef __cplusplus
#define AON_PROVIDER_FROZEN_(text_, condition_) static_assert(condition_, text_)
extern "C" {
extern __attribute__((visibility("default"))) const struct aon_provider_api aon_provider_v1;
}
#else
#define AON_PROVIDER_FROZEN_(text_, condition_) _Static_assert(condition_, text_)
extern __attribute__((visibility("default"))) const struct aon_provider_api aon_provider_v1;
#endif

/* The layout is frozen: these lines may be added to, never changed. */
#define AON_PROVIDER_FIELD_(table_, field_, offset_) \
  AON_PROVIDER_FROZEN_("frozen: provider ABI 1", offsetof(struct table_, field_) == (offset_))
AON_PROVIDER_FROZEN_("frozen: provider ABI 1", sizeof(aon_status) == 4 && sizeof(aon_host) == 4);
AON_PROVIDER_FROZEN_("frozen: provider ABI 1", sizeof(aon_state) == 4 && sizeof(void*) == 8);
AON_PROVIDER_FIELD_(aon_core_api, abi, 0);
AON_PROVIDER_FIELD_(aon_core_api, size, 4);
AON_PROVIDER_FIELD_(aon_core_api, now_ticks, 8);
AON_PROVIDER_FIELD_(aon_core_api, define_metric, 16);
AON_PROVIDER_FIELD_(aon_core_api, sample, 24);
AON_PROVIDER_FIELD_(aon_core_api, set_state, 32);
AON_PROVIDER_FIELD_(aon_core_api, intern, 40);
AON_PROVIDER_FIELD_(aon_core_api, reserve, 48);
AON_PROVIDER_FIELD_(aon_core_api, commit, 56);
AON_PROVIDER_FIELD_(aon_core_api, log, 64);
AON_PROVIDER_FIELD_(aon_core_api, send_message, 72);
AON_PROVIDER_FIELD_(aon_core_api, define, 80);
AON_PROVIDER_FIELD_(aon_core_api, put_record, 88);
AON_PROVIDER_FIELD_(aon_core_api, add_lost, 96);
AON_PROVIDER_FIELD_(aon_core_api, add_cost, 104);
AON_PROVIDER_FIELD_(aon_core_api, unwind, 112);
AON_PROVIDER_FIELD_(aon_core_api, take_stack, 120);
AON_PROVIDER_FIELD_(aon_core_api, set_stack_rate, 128);
AON_PROVIDER_FIELD_(aon_provider_api, abi, 0);
AON_PROVIDER_FIELD_(aon_provider_api, size, 4);
AON_PROVIDER_FIELD_(aon_provider_api, hosts, 8);
AON_PROVIDER_FIELD_(aon_provider_api, tick_period_ms, 12);
AON_PROVIDER_FIELD_(aon_provider_api, name, 16);
AON_PROVIDER_FIELD_(aon_provider_api, description, 24);
AON_PROVIDER_FIELD_(aon_provider_api, start, 32);
AON_PROVIDER_FIELD_(aon_provider_api, flush, 40);
AON_PROVIDER_FIELD_(aon_provider_api, stop, 48);
AON_PROVIDER_FIELD_(aon_provider_api, process_started, 56);
AON_PROVIDER_FIELD_(aon_provider_api, process_ended, 64);
AON_PROVIDER_FIELD_(aon_provider_api, tick, 72);
AON_PROVIDER_FIELD_(aon_provider_api, message, 80);
AON_PROVIDER_FIELD_(aon_provider_api, throttle, 88);
AON_PROVIDER_FROZEN_("frozen: provider ABI 1",
                     sizeof(struct aon_provider_api) >= AON_PROVIDER_SIZE_V1);
AON_PROVIDER_FROZEN_("frozen: provider ABI 1", sizeof(struct aon_core_api) >= AON_CORE_SIZE_V1);

#endif  // AON_PROVIDER_H_
