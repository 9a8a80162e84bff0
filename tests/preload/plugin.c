// A library whose functions end in a tail call of gRPC, so that gRPC sees the
// return address of the plugin's caller.

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

void Begin(void) { grpc_init(); }

static grpc_channel* Make(grpc_channel_credentials* credentials) {
  return grpc_channel_create("127.0.0.1:1", credentials, NULL);
}

grpc_channel* MakeChannel(void) {
  static grpc_channel_credentials* credentials;
  credentials = grpc_insecure_credentials_create();
  return Make(credentials);
}

void End(void* channel) {
  grpc_channel_destroy(channel);
  grpc_shutdown();
}
