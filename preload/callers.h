// Who calls gRPC's functions, and what they would have called.

#ifndef PENSTOCK_PRELOAD_CALLERS_H_
#define PENSTOCK_PRELOAD_CALLERS_H_

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

// gRPC's own functions.
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
  kInside,       // gRPC itself, or Penstock, or there is no gRPC: not touched
  kOtherGrpc,    // it uses a gRPC that Penstock is not made for
  kApplication,  // the program, a binding or a library: to be carried
};

// A program or library that has called; null where code has none, such as that
// of an interpreter. Lives for ever.
struct Caller {
  const struct link_map* object;
  enum Place place;
  const char* soname;  // of the gRPC that it uses
  int sees_common;     // whether all callers have that gRPC
  struct Grpc grpc;
  struct Caller* next;
};

// Returns the caller that a return address lies in. A few nanoseconds but for
// its first call; takes no lock. Aborts if there is no memory.
const struct Caller* CallerAt(const void* return_address);

#endif  // PENSTOCK_PRELOAD_CALLERS_H_
