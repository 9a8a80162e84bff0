#include "preload/callers.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "preload/objects.h"
#include "preload/release.h"

static _Atomic(struct Caller*) callers = NULL;

static enum Place PlaceOf(const struct Caller* caller,
                          const struct link_map* grpc) {
  if (caller->object == grpc) return kInside;
  if (strcmp(caller->soname, PENSTOCK_GRPC_CORE) != 0) return kOtherGrpc;
  return HasPenstock(caller->object) ? kInside : kApplication;
}

static struct Caller* Make(const struct link_map* object) {
  struct Caller* made = calloc(1, sizeof *made);
  if (made == NULL) abort();
  made->object = object;
#define PENSTOCK_FIND(name)                                      \
  made->grpc.name = (__typeof__(made->grpc.name))FindFor(object, \
                                                         "grpc"  \
                                                         "_" #name)
  PENSTOCK_FIND(init);
  PENSTOCK_FIND(channel_create);
  PENSTOCK_FIND(lame_client_channel_create);
  PENSTOCK_FIND(server_create);
  PENSTOCK_FIND(server_add_http2_port);
  PENSTOCK_FIND(slice_from_copied_buffer);
#undef PENSTOCK_FIND
  if (made->grpc.init == NULL) return made;
  const struct link_map* grpc = ObjectOf((const void*)made->grpc.init);
  made->soname = SonameOf(grpc);
  made->place = PlaceOf(made, grpc);
  made->sees_common = FindForAll("grpc_init") == (const void*)made->grpc.init;
  return made;
}

// Functions for a program that checks for gRPC by a weak reference or by
// dlsym(). Such a program finds the stub's functions even if gRPC is not
// loaded. gRPC may be loaded later.
static void NoInit(void) {}
static grpc_channel* NoChannel(const char* target,
                               grpc_channel_credentials* credentials,
                               const grpc_channel_args* arguments) {
  return NULL;
}
static grpc_channel* NoLameChannel(const char* target, grpc_status_code code,
                                   const char* text) {
  return NULL;
}
static grpc_server* NoServer(const grpc_channel_args* arguments,
                             void* reserved) {
  return NULL;
}
static int NoPort(grpc_server* server, const char* address,
                  grpc_server_credentials* credentials) {
  return 0;
}
static grpc_slice NoSlice(const char* source, size_t length) {
  return (grpc_slice){0};
}
static const struct Caller kNoGrpc = {
    .place = kInside,
    .soname = "",
    .grpc = {NoInit, NoChannel, NoLameChannel, NoServer, NoPort, NoSlice}};

const struct Caller* CallerAt(const void* return_address) {
  const struct link_map* object = ObjectOf(return_address);
  struct Caller* known = atomic_load(&callers);
  for (; known != NULL; known = known->next) {
    if (known->object == object) return known;
  }
  // Keeps one of the two objects if two threads make a caller for one object at
  // the same time. Either is correct.
  struct Caller* made = Make(object);
  if (made->grpc.init == NULL) {
    free(made);
    return &kNoGrpc;
  }
  made->next = atomic_load(&callers);
  while (!atomic_compare_exchange_weak(&callers, &made->next, made)) {
  }
  return made;
}
