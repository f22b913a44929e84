/// Steps of messages. Either all receives are posted before anything is sent, or nothing that is
/// sent waits for its receiver, or all members do one message after the other in the same order.
#include <sched.h>

#include "tests/e2e/mpi/programs/random/random.h"

typedef struct {
  int source_side, source, destination;  ///< ranks; the destination's in the other group, if any
  int tag, count, bytes, extent;
  MPI_Datatype type;
  bool is_own_type;
} Message;

enum { kMaxMessages = 24 };
typedef enum { kExact, kAnySource, kAnyTag, kAny } Wildcard;

static int destination_side(const Comm* c, const Message* m) {
  return c->kind == kInter ? 1 - m->source_side : 0;
}
static bool sends(const Comm* c, const Message* m) {
  return c->side == m->source_side && c->rank == m->source;
}
static bool receives(const Comm* c, const Message* m) {
  return c->side == destination_side(c, m) && c->rank == m->destination;
}

static Message plan_message(State* s, const Comm* c) {
  Message m = {.tag = below(&s->plan, kTagCount)};
  m.source_side = c->kind == kInter ? below(&s->plan, 2) : 0;
  m.source = below(&s->plan, c->size[m.source_side]);
  m.destination = below(&s->plan, c->size[destination_side(c, &m)]);
  Random shape = {next_random(&s->plan)};
  if (!sends(c, &m) && !receives(c, &m)) return m;
  m.type = random_type(&shape, &m.bytes, &m.extent, &m.is_own_type);
  m.count = random_count(&shape, m.bytes);
  return m;
}

static void end_message(const Comm* c, Message* m) {
  if ((sends(c, m) || receives(c, m)) && m->is_own_type) DO(Type_free, &m->type);
}

static void tell_send(const Comm* c, const Message* m) {
  tell("send %d %d %d %d %d", c->id, c->world[m->source_side][m->source],
       c->world[destination_side(c, m)][m->destination], m->tag, m->count * m->bytes);
}

static void* memory_of(State* s, const Message* m) {
  return buffer(s, (size_t)m->count * (size_t)m->extent);
}

/// Every message fits, so it does not matter which receive gets which.
enum { kRoomBytes = 120000 };

static int source_of(const Message* m, Wildcard w) {
  return w == kAnySource || w == kAny ? MPI_ANY_SOURCE : m->source;
}
static int tag_of(const Message* m, Wildcard w) {
  return w == kAnyTag || w == kAny ? MPI_ANY_TAG : m->tag;
}

static void post_receive(State* s, const Comm* c, const Message* m, Wildcard w) {
  void* room = buffer(s, kRoomBytes);
  const bool is_persistent = chance(&s->own, 25);
  MPI_Request* request = new_request(s, is_persistent);
  if (!is_persistent) {
    DO(Irecv, room, kRoomBytes, MPI_BYTE, source_of(m, w), tag_of(m, w), c->handle, request);
    return;
  }
  DO(Recv_init, room, kRoomBytes, MPI_BYTE, source_of(m, w), tag_of(m, w), c->handle, request);
  if (chance(&s->own, 50)) {
    DO(Start, request);
  } else {
    DO(Startall, 1, request);
  }
  activate(s, index_of(s, request));
}

static void receive_matched(State* s, const Comm* c, const Message* m, Wildcard w) {
  MPI_Message message;
  MPI_Status status;
  int is_there = 1;
  if (chance(&s->own, 50)) {
    DO(Mprobe, source_of(m, w), tag_of(m, w), c->handle, &message, &status);
  } else {
    do {
      DO(Improbe, source_of(m, w), tag_of(m, w), c->handle, &is_there, &message, &status);
      if (!is_there) sched_yield();
    } while (!is_there);
  }
  if (chance(&s->own, 50)) {
    DO(Mrecv, buffer(s, kRoomBytes), kRoomBytes, MPI_BYTE, &message,
       chance(&s->own, 50) ? &status : MPI_STATUS_IGNORE);
  } else {
    void* room = buffer(s, kRoomBytes);
    DO(Imrecv, room, kRoomBytes, MPI_BYTE, &message, new_request(s, false));
  }
}

static void receive(State* s, const Comm* c, const Message* m, Wildcard w) {
  MPI_Status status;
  if (chance(&s->own, 30)) return receive_matched(s, c, m, w);
  if (chance(&s->own, 30)) {
    int is_there = 1;
    if (chance(&s->own, 50)) {
      DO(Probe, source_of(m, w), tag_of(m, w), c->handle, &status);
    } else {
      do {
        DO(Iprobe, source_of(m, w), tag_of(m, w), c->handle, &is_there, &status);
        if (!is_there) sched_yield();
      } while (!is_there);
    }
  }
  MPI_Status* told = chance(&s->own, 50) ? &status : MPI_STATUS_IGNORE;
  DO(Recv, buffer(s, kRoomBytes), kRoomBytes, MPI_BYTE, source_of(m, w), tag_of(m, w), c->handle,
     told);
}

static void send_blocking(State* s, const Comm* c, const Message* m, bool is_posted) {
  void* data = memory_of(s, m);
  const int way = below(&s->own, is_posted ? 4 : 3);
  tell_send(c, m);
  if (way == 0) DO(Send, data, m->count, m->type, m->destination, m->tag, c->handle);
  if (way == 1) DO(Ssend, data, m->count, m->type, m->destination, m->tag, c->handle);
  if (way == 2) DO(Bsend, data, m->count, m->type, m->destination, m->tag, c->handle);
  if (way == 3) DO(Rsend, data, m->count, m->type, m->destination, m->tag, c->handle);
}

static void send_persistent(State* s, const Comm* c, const Message* m, bool is_posted) {
  void* data = memory_of(s, m);
  const int way = below(&s->own, is_posted ? 4 : 3);
  MPI_Request* r = new_request(s, true);
  if (way == 0) DO(Send_init, data, m->count, m->type, m->destination, m->tag, c->handle, r);
  if (way == 1) DO(Ssend_init, data, m->count, m->type, m->destination, m->tag, c->handle, r);
  if (way == 2) DO(Bsend_init, data, m->count, m->type, m->destination, m->tag, c->handle, r);
  if (way == 3) DO(Rsend_init, data, m->count, m->type, m->destination, m->tag, c->handle, r);
  tell_send(c, m);
  DO(Start, r);
  if (chance(&s->own, 20) && way != 1) {
    DO(Request_free, r);
    s->is_persistent[index_of(s, r)] = false;
  } else {
    activate(s, index_of(s, r));
  }
}

static void send_begun(State* s, const Comm* c, const Message* m, bool is_posted) {
  if (chance(&s->own, 25)) return send_persistent(s, c, m, is_posted);
  void* data = memory_of(s, m);
  const int way = below(&s->own, is_posted ? 4 : 3);
  tell_send(c, m);
  MPI_Request* r = new_request(s, false);
  if (way == 0) DO(Isend, data, m->count, m->type, m->destination, m->tag, c->handle, r);
  if (way == 1) DO(Issend, data, m->count, m->type, m->destination, m->tag, c->handle, r);
  if (way == 2) DO(Ibsend, data, m->count, m->type, m->destination, m->tag, c->handle, r);
  if (way == 3) DO(Irsend, data, m->count, m->type, m->destination, m->tag, c->handle, r);
  if (!chance(&s->own, 10)) return;
  DO(Request_free, r);
  s->is_active[index_of(s, r)] = false;
}

void step_messages(State* s) {
  Comm* c = random_comm(s, NULL);
  const int count = 1 + below(&s->plan, kMaxMessages);
  const bool are_posted = chance(&s->plan, 50);
  Wildcard by_rank[2][kMaxProcesses];
  for (int i = 0; i < 2 * kMaxProcesses; ++i)
    by_rank[i / kMaxProcesses][i % kMaxProcesses] = (Wildcard)below(&s->plan, 4);
  if (!is_member(c)) return;
  // What an earlier step has left behind would take the messages of this one.
  drain(s, 0);
  PMPI_Barrier(c->handle);
  Message messages[kMaxMessages];
  for (int i = 0; i < count; ++i) messages[i] = plan_message(s, c);
  for (int i = 0; are_posted && i < count; ++i) {
    const Message* m = &messages[i];
    if (receives(c, m)) post_receive(s, c, m, by_rank[c->side][c->rank]);
  }
  if (are_posted) DO(Barrier, c->handle);
  if (are_posted) tell("collective %d BARRIER -1 0 0", c->id);
  for (int i = 0; i < count; ++i) {
    const Message* m = &messages[i];
    if (!sends(c, m)) continue;
    if (are_posted && chance(&s->own, 50)) {
      send_blocking(s, c, m, true);
    } else {
      send_begun(s, c, m, are_posted);
    }
  }
  for (int i = 0; !are_posted && i < count; ++i) {
    const Message* m = &messages[i];
    if (receives(c, m)) receive(s, c, m, by_rank[c->side][c->rank]);
  }
  for (int i = 0; i < count; ++i) end_message(c, &messages[i]);
}

static void exchange(State* s, const Comm* c, const Message* m, const Message* back) {
  const bool is_sender = sends(c, m);
  const Message* out = is_sender ? m : back;
  const Message* in = is_sender ? back : m;
  MPI_Status status;
  MPI_Status* told = chance(&s->own, 50) ? &status : MPI_STATUS_IGNORE;
  const int tag = chance(&s->own, 30) ? MPI_ANY_TAG : in->tag;
  tell_send(c, out);
  DO(Sendrecv, memory_of(s, out), out->count, out->type, out->destination, out->tag,
     buffer(s, kRoomBytes), kRoomBytes, MPI_BYTE, in->source, tag, c->handle, told);
}

static void replace(State* s, const Comm* c, const Message* m, const Message* back) {
  const bool is_sender = sends(c, m);
  const Message* out = is_sender ? m : back;
  const Message* in = is_sender ? back : m;
  MPI_Status status;
  tell_send(c, out);
  // Of bytes: MPICH 4.0 truncates what it replaces of types with holes.
  DO(Sendrecv_replace, memory_of(s, out), out->count * out->bytes, MPI_BYTE, out->destination,
     out->tag, in->source, in->tag, c->handle, chance(&s->own, 50) ? &status : MPI_STATUS_IGNORE);
}

/// Both ways between two processes, or from one to itself.
static void exchange_in_order(State* s, const Comm* c, Message* m, bool is_replaced) {
  Message back = *m;
  back.source_side = destination_side(c, m);
  back.source = m->destination;
  back.destination = m->source;
  back.tag = (m->tag + 1) % kTagCount;
  const bool is_self = m->source == m->destination && c->kind != kInter;
  if (is_self) back = *m;
  if (is_replaced) {
    replace(s, c, m, &back);
  } else {
    exchange(s, c, m, &back);
  }
}

void step_ordered_messages(State* s) {
  Comm* c = random_comm(s, NULL);
  const int count = 1 + below(&s->plan, kMaxMessages);
  if (!is_member(c)) return;
  drain(s, 0);
  PMPI_Barrier(c->handle);
  for (int i = 0; i < count; ++i) {
    Message m = plan_message(s, c);
    const int way = below(&s->plan, 3);
    const Wildcard w = chance(&s->plan, 50) ? kExact : kAnyTag;
    const bool is_self = m.source == m.destination && c->kind != kInter;
    if (sends(c, &m) || receives(c, &m)) {
      if (is_self || way > 0) {
        exchange_in_order(s, c, &m, way == 1);
      } else if (sends(c, &m)) {
        send_blocking(s, c, &m, false);
      } else {
        receive(s, c, &m, w);
      }
    }
    end_message(c, &m);
    // A receive that was begun must not take what a later one is for.
    drain(s, 0);
  }
}
