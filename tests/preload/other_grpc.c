// A fake gRPC of another release, libgrpc.so.37, for the preloaded library to
// find. Prints the called functions.

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <stdio.h>

static void Say(const char* what) {
  printf("%s\n", what);
  fflush(stdout);
}

void grpc_init(void) { Say("init"); }

grpc_channel* grpc_channel_create(const char* target,
                                  grpc_channel_credentials* credentials,
                                  const grpc_channel_args* arguments) {
  Say("channel_create");
  return NULL;
}

grpc_channel* grpc_lame_client_channel_create(const char* target,
                                              grpc_status_code code,
                                              const char* message) {
  Say("lame_client_channel_create");
  return NULL;
}

grpc_server* grpc_server_create(const grpc_channel_args* arguments,
                                void* reserved) {
  Say("server_create");
  return NULL;
}

int grpc_server_add_http2_port(grpc_server* server, const char* address,
                               grpc_server_credentials* credentials) {
  Say("server_add_http2_port");
  return 1;
}

grpc_slice grpc_slice_from_copied_buffer(const char* source, size_t length) {
  Say("slice_from_copied_buffer");
  return (grpc_slice){0};
}
