/* What the preloaded stub (preload/) calls in the library. Plain C. Of gRPC it
 * takes the declarations only: the stub is linked to nothing. */

#ifndef PENSTOCK_TRANSPORT_PRELOAD_H_
#define PENSTOCK_TRANSPORT_PRELOAD_H_

#include <grpc/grpc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As gRPC's core has them. */
typedef grpc_channel* (*PenstockCreateChannel)(
    const char* target, grpc_channel_credentials* credentials,
    const grpc_channel_args* arguments);
typedef grpc_server* (*PenstockCreateServer)(const grpc_channel_args* arguments,
                                             void* reserved);

/* Settings come from the environment. Each function is thread-safe, and is to
 * be called after grpc_init(). */
struct PenstockPreload {
  /* Returns what `create`, gRPC's own function, returns for credentials that
   * penstock::Credentials() would have wrapped. If this process cannot use
   * Penstock, logs the reason; the channel is then a stock one, and with
   * PENSTOCK_POLICY=require one whose calls fail with that reason. */
  grpc_channel* (*create_channel)(PenstockCreateChannel create,
                                  const char* target,
                                  grpc_channel_credentials* credentials,
                                  const grpc_channel_args* arguments);
  /* Returns a server of `create` as penstock::Enable() would have had it made.
   * If this process cannot use Penstock, logs the reason; the server is then a
   * stock one. */
  grpc_server* (*create_server)(PenstockCreateServer create,
                                const grpc_channel_args* arguments);
  /* Whether such a server has been made although PENSTOCK_POLICY=require: the
   * caller then is to bind no port. */
  int (*refuses_ports)(void);
  /* Copies bytes to memory that shared memory carries messages from without
   * another copy. Returns 0 where gRPC's own memory is to be used, as it is for
   * less than PENSTOCK_PRELOAD_COPIED_BYTES. */
  int (*copy_to_slice)(const char* source, size_t length, grpc_slice* slice);
};

#define PENSTOCK_PRELOAD_COPIED_BYTES (16 * 1024)

/* What tells the stub that a program or a library has Penstock in it: an ELF
 * note with this owner and this type. It is there however Penstock was linked,
 * and whatever symbols are shown. */
#define PENSTOCK_NOTE_OWNER "Penstock"
#define PENSTOCK_NOTE_TYPE 1

/* The name of the one function below. It changes with the functions above, and
 * so a stub does not call a library that it does not fit. */
#define PENSTOCK_PRELOAD_SYMBOL "penstock_preload_1"

__attribute__((visibility("default"))) const struct PenstockPreload*
penstock_preload_1(void);

#ifdef __cplusplus
}
#endif

#endif /* PENSTOCK_TRANSPORT_PRELOAD_H_ */
