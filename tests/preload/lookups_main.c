// lookups: initialises gRPC, and prints the number of calls of
// _dl_find_object(), by which the preloaded library looks up its caller. Counts
// them for 1,000 further initialisations and shutdowns, for 1,000 copies of
// short slices, and for 1,000 copies of long ones.

#include <dlfcn.h>
#include <grpc/grpc.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_int lookups;

// Replaces glibc's function, because a program precedes its libraries.
int _dl_find_object(void* address, struct dl_find_object* result) {
  int (*find)(void*, struct dl_find_object*) = (int (*)(
      void*, struct dl_find_object*))dlsym(RTLD_NEXT, "_dl_find_object");
  atomic_fetch_add(&lookups, 1);
  return find(address, result);
}

static void BeginAndEnd(void) {
  grpc_init();
  grpc_shutdown();
}

static void CopyShort(void) {
  grpc_slice_unref(grpc_slice_from_copied_buffer("key", 3));
}

static void CopyLong(void) {
  static char message[64 * 1024];
  grpc_slice slice = grpc_slice_from_copied_buffer(message, sizeof message);
  grpc_slice_unref(slice);
}

static int LookupsOf(void (*call)(void)) {
  const int before = lookups;
  for (int i = 0; i < 1000; ++i) call();
  return lookups - before;
}

int main(void) {
  grpc_init();
  const int begun = LookupsOf(BeginAndEnd);
  const int copied_short = LookupsOf(CopyShort);
  const int copied_long = LookupsOf(CopyLong);
  printf("%d %d %d\n", begun, copied_short, copied_long);
  grpc_shutdown();
  return 0;
}
