// Calls each function that the preloaded library intercepts, linked with the
// fake gRPC of other_grpc.c. Exits with 3 if the server cannot listen on its
// port.

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>

int main(void) {
  grpc_init();
  grpc_channel_create("here", NULL, NULL);
  grpc_slice_from_copied_buffer("", 0);
  return grpc_server_add_http2_port(grpc_server_create(NULL, NULL), "here",
                                    NULL) == 0
             ? 3
             : 0;
}
