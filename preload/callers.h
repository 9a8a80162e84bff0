// Finds the callers of gRPC's functions. For each caller, also finds the
// functions that it would have called without the stub.

#ifndef PENSTOCK_PRELOAD_CALLERS_H_
#define PENSTOCK_PRELOAD_CALLERS_H_

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

// The addresses of gRPC's own functions.
struct Grpc {
  void (*init)(void);
  grpc_channel* (*channel_create)(const char*, grpc_channel_credentials*,
                                  const grpc_channel_args*);
  grpc_channel* (*lame_client_channel_create)(const char*, grpc_status_code,
                                              const char*);
  grpc_server* (*server_create)(const grpc_channel_args*, void*);
  int (*server_add_http2_port)(grpc_server*, const char*,
                               grpc_server_credentials*);
  grpc_slice (*slice_from_copied_buffer)(const char*, size_t);
};

enum Place {
  kInside,       // gRPC or Penstock itself, or no gRPC: not intercepted
  kOtherGrpc,    // uses a gRPC that Penstock does not support
  kApplication,  // the program, a binding or a library: to be carried
};

// A program or library that has called a gRPC function. `object` is null for
// code outside any object, such as code that an interpreter has generated.
// Never freed.
struct Caller {
  const struct link_map* object;
  enum Place place;
  const char* soname;  // of the gRPC library that the object uses
  int sees_common;     // true if all callers use that gRPC library
  struct Grpc grpc;
  struct Caller* next;
};

// Returns the caller that contains a return address. Takes a few nanoseconds,
// and longer only for an object's first call. Takes no lock. Aborts if there is
// no memory.
const struct Caller* CallerAt(const void* return_address);

#endif  // PENSTOCK_PRELOAD_CALLERS_H_
