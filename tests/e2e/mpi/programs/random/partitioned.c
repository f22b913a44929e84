/// Steps of partitioned messages, where the library has them. Several may have one envelope: MPI
/// pairs them in the order in which they are made, and each side starts them in one of its own.
#include <sched.h>

#include "tests/e2e/mpi/programs/random/random.h"

#if MPI_VERSION < 4

void step_partitioned(State* s) { (void)s; }

#else

enum { kMostChannels = 4, kMostParts = 6 };

typedef struct {
  int source, destination, tag;
  int parts, each;
  MPI_Request *out, *in;  ///< null where this process is not that end
} Channel;

static void make(State* s, const Comm* c, Channel* channel, MPI_Request* requests, int* made) {
  const int bytes = channel->parts * channel->each;
  channel->out = channel->in = NULL;
  if (c->rank == channel->source) {
    channel->out = &requests[(*made)++];
    DO(Psend_init, buffer(s, (size_t)bytes), channel->parts, channel->each, MPI_BYTE,
       channel->destination, channel->tag, c->handle, MPI_INFO_NULL, channel->out);
  }
  if (c->rank == channel->destination) {
    channel->in = &requests[(*made)++];
    DO(Precv_init, buffer(s, (size_t)bytes), channel->parts, channel->each, MPI_BYTE,
       channel->source, channel->tag, c->handle, MPI_INFO_NULL, channel->in);
  }
}

static void start(State* s, MPI_Request* request) {
  if (chance(&s->own, 50)) {
    DO(Start, request);
  } else {
    DO(Startall, 1, request);
  }
}

static void make_ready(State* s, const Channel* channel) {
  int all[kMostParts];
  const int way = below(&s->own, 3), parts = channel->parts;
  for (int i = 0; i < parts; ++i) all[i] = parts - 1 - i;
  if (way == 0) DO(Pready_list, parts, all, *channel->out);
  if (way == 1) DO(Pready_range, 0, parts - 1, *channel->out);
  for (int i = 0; way == 2 && i < parts; ++i) DO(Pready, all[i], *channel->out);
}

static void look(State* s, const Channel* channel) {
  int is_there = 0;
  for (int i = below(&s->own, 4); i > 0; --i) {
    DO(Parrived, *channel->in, below(&s->own, channel->parts), &is_there);
    sched_yield();
  }
}

static void run_round(State* s, const Comm* c, Channel* channels, int count) {
  const int first_out = below(&s->own, count), first_in = below(&s->own, count);
  for (int i = 0; i < count; ++i) {
    Channel* in = &channels[(first_in + i) % count];
    if (in->in != NULL) start(s, in->in);
  }
  for (int i = 0; i < count; ++i) {
    Channel* out = &channels[(first_out + i) % count];
    if (out->out == NULL) continue;
    start(s, out->out);
    tell("send %d %d %d %d %d", c->id, c->world[0][out->source], c->world[0][out->destination],
         out->tag, out->parts * out->each);
    make_ready(s, out);
  }
  for (int i = 0; i < count; ++i) {
    if (channels[i].in != NULL) look(s, &channels[i]);
  }
}

void step_partitioned(State* s) {
  Comm* c = random_comm(s, is_within_one_group);
  const int count = 1 + below(&s->plan, kMostChannels), rounds = below(&s->plan, 4);
  Channel channels[kMostChannels];
  for (int i = 0; i < count; ++i) {
    channels[i] = (Channel){below(&s->plan, c->size[0]),
                            below(&s->plan, c->size[0]),
                            below(&s->plan, 2),
                            1 + below(&s->plan, kMostParts),
                            1 + below(&s->plan, 500),
                            NULL,
                            NULL};
  }
  if (!is_member(c)) return;
  MPI_Request requests[2 * kMostChannels];
  int made = 0;
  for (int i = 0; i < count; ++i) make(s, c, &channels[i], requests, &made);
  for (int round = 0; round < rounds; ++round) {
    run_round(s, c, channels, count);
    complete_active(s, requests, made);
  }
  free_all(requests, made);
}

#endif
