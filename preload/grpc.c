// Replacements of gRPC's functions that start gRPC, make a channel or a server,
// and send bytes. The loader binds the program to these.

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <stdatomic.h>

#include "preload/callers.h"
#include "preload/library.h"
#include "preload/release.h"
#include "preload/say.h"

#define PENSTOCK_EXPORT __attribute__((visibility("default")))
#define PENSTOCK_CALLER CallerAt(__builtin_return_address(0))

// The gRPC library that all callers use, so that per-RPC functions need not
// look up their caller. Null in two cases: before the library is open, which
// keeps gRPC loaded, and if callers may use different gRPC libraries.
static _Atomic(const struct Grpc*) common = NULL;

static void SayOtherGrpcOnce(const struct Caller* caller) {
  static atomic_flag said = ATOMIC_FLAG_INIT;
  if (IsOff() || atomic_flag_test_and_set(&said)) return;
  Say("Penstock is not used: the program has its gRPC from %s, and Penstock is "
      "made for " PENSTOCK_GRPC_RELEASE " (" PENSTOCK_GRPC_CORE ")",
      caller->soname[0] == '\0' ? "a library of its own" : caller->soname);
}

// Returns true if the caller's channel or server must fail, because Penstock is
// required and cannot be used.
static int Refuses(const struct Caller* caller) {
  const int cannot = caller->place == kOtherGrpc ||
                     (caller->place == kApplication && LibraryFailed());
  return cannot && !IsOff() && IsRequired();
}

PENSTOCK_EXPORT void grpc_init(void) {
  const struct Grpc* known = atomic_load(&common);
  if (known != NULL) {
    known->init();
    return;
  }
  const struct Caller* caller = PENSTOCK_CALLER;
  if (caller->place == kApplication) {
    // Opens Penstock's library before gRPC is configured, so that Penstock can
    // register itself.
    OpenLibrary();
    if (caller->sees_common && Library() != NULL) {
      atomic_store(&common, &caller->grpc);
    }
  }
  if (caller->place == kOtherGrpc) SayOtherGrpcOnce(caller);
  caller->grpc.init();
}

PENSTOCK_EXPORT grpc_channel* grpc_channel_create(
    const char* target, grpc_channel_credentials* credentials,
    const grpc_channel_args* arguments) {
  const struct Caller* caller = PENSTOCK_CALLER;
  const struct Grpc* grpc = &caller->grpc;
  if (Refuses(caller)) {
    return grpc->lame_client_channel_create(
        target, GRPC_STATUS_FAILED_PRECONDITION,
        "Penstock is required but not used: the log says why");
  }
  if (caller->place != kApplication || Library() == NULL) {
    return grpc->channel_create(target, credentials, arguments);
  }
  return Library()->create_channel(grpc->channel_create, target, credentials,
                                   arguments);
}

PENSTOCK_EXPORT grpc_server* grpc_server_create(
    const grpc_channel_args* arguments, void* reserved) {
  const struct Caller* caller = PENSTOCK_CALLER;
  const struct Grpc* grpc = &caller->grpc;
  if (caller->place != kApplication || Library() == NULL) {
    return grpc->server_create(arguments, reserved);
  }
  return Library()->create_server(grpc->server_create, arguments);
}

PENSTOCK_EXPORT int grpc_server_add_http2_port(
    grpc_server* server, const char* address,
    grpc_server_credentials* credentials) {
  const struct Caller* caller = PENSTOCK_CALLER;
  if (Refuses(caller)) return 0;
  if (caller->place == kApplication && Library() != NULL &&
      Library()->refuses_ports()) {
    return 0;
  }
  return caller->grpc.server_add_http2_port(server, address, credentials);
}

// Copies a slice. The bindings of other languages call this function before
// they send.
PENSTOCK_EXPORT grpc_slice grpc_slice_from_copied_buffer(const char* source,
                                                         size_t length) {
  const struct Grpc* known = atomic_load(&common);
  if (known != NULL && length < PENSTOCK_PRELOAD_COPIED_BYTES) {
    return known->slice_from_copied_buffer(source, length);
  }
  const struct Caller* caller = PENSTOCK_CALLER;
  grpc_slice slice;
  if (caller->place == kApplication && Library() != NULL &&
      Library()->copy_to_slice(source, length, &slice)) {
    return slice;
  }
  return caller->grpc.slice_from_copied_buffer(source, length);
}
