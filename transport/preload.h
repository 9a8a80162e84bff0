/* The interface between the preloaded stub (preload/) and the library. Plain C.
 * Uses only declarations of gRPC, because the stub is linked to nothing. */

#ifndef PENSTOCK_TRANSPORT_PRELOAD_H_
#define PENSTOCK_TRANSPORT_PRELOAD_H_

#include <grpc/grpc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The signatures of gRPC's core. */
typedef grpc_channel* (*PenstockCreateChannel)(
    const char* target, grpc_channel_credentials* credentials,
    const grpc_channel_args* arguments);
typedef grpc_server* (*PenstockCreateServer)(const grpc_channel_args* arguments,
                                             void* reserved);

/* Settings come from the environment. Each function is thread-safe. Call it
 * after grpc_init(). */
struct PenstockPreload {
  /* Returns a channel of `create`, gRPC's own function, with the credentials
   * that penstock::Credentials() makes. If this process cannot use Penstock,
   * logs the reason, and returns a stock channel. With PENSTOCK_POLICY=require,
   * calls on that channel fail with the reason. */
  grpc_channel* (*create_channel)(PenstockCreateChannel create,
                                  const char* target,
                                  grpc_channel_credentials* credentials,
                                  const grpc_channel_args* arguments);
  /* Returns a server of `create`, prepared as penstock::Enable() does. If this
   * process cannot use Penstock, logs the reason, and returns a stock
   * server. */
  grpc_server* (*create_server)(PenstockCreateServer create,
                                const grpc_channel_args* arguments);
  /* Returns non-zero if create_server() has made a stock server although
   * PENSTOCK_POLICY=require. The caller must then bind no port. */
  int (*refuses_ports)(void);
  /* Copies bytes to shared memory, from which a path sends messages without
   * another copy. Returns 0 if the caller must use gRPC's own memory. Copies
   * shorter than PENSTOCK_PRELOAD_COPIED_BYTES always return 0. */
  int (*copy_to_slice)(const char* source, size_t length, grpc_slice* slice);
};

#define PENSTOCK_PRELOAD_COPIED_BYTES (16 * 1024)

/* The owner and the type of an ELF note, by which the stub finds out that a
 * program or a library contains Penstock. The note is there however Penstock
 * was linked, and whatever symbols are exported. */
#define PENSTOCK_NOTE_OWNER "Penstock"
#define PENSTOCK_NOTE_TYPE 1

/* Places the note, whose description is empty. For one file of Penstock that
 * every user of Penstock links. */
#define PENSTOCK_TEXT(number) #number
#define PENSTOCK_TEXT_OF(number) PENSTOCK_TEXT(number)
/* clang-format off */
#define PENSTOCK_NOTE()                                         \
  asm(".pushsection .note.penstock, \"a\", @note\n"             \
      ".balign 4\n"                                             \
      ".long 2f - 1f, 0, " PENSTOCK_TEXT_OF(PENSTOCK_NOTE_TYPE) "\n" \
      "1: .asciz \"" PENSTOCK_NOTE_OWNER "\"\n"                  \
      "2: .balign 4\n"                                          \
      ".popsection")
/* clang-format on */

/* The symbol of the function below. The name changes with the functions
 * above, so that a stub does not call an incompatible library. */
#define PENSTOCK_PRELOAD_SYMBOL "penstock_preload_1"

__attribute__((visibility("default"))) const struct PenstockPreload*
penstock_preload_1(void);

#ifdef __cplusplus
}
#endif

#endif /* PENSTOCK_TRANSPORT_PRELOAD_H_ */
