#include "preload/sanitizer.h"

#include <dlfcn.h>
#include <stddef.h>

#include "preload/objects.h"

static const struct {
  const char* function;  // of the runtime's
  const char* name;
} kSanitizers[] = {{"__asan_init", "AddressSanitizer"},
                   {"__tsan_init", "ThreadSanitizer"},
                   {"__hwasan_init", "HWAddressSanitizer"},
                   {"__msan_init", "MemorySanitizer"}};

const char* Sanitizer(void) {
  for (size_t i = 0; i < sizeof kSanitizers / sizeof *kSanitizers; ++i) {
    if (dlsym(RTLD_DEFAULT, kSanitizers[i].function) != NULL) {
      return kSanitizers[i].name;
    }
  }
  return NULL;
}

// Does what strstr() does. AddressSanitizer has replaced that, and is not ready
// yet.
static int Contains(const char* text, const char* part) {
  for (; *text != '\0'; ++text) {
    size_t same = 0;
    while (part[same] != '\0' && text[same] == part[same]) ++same;
    if (part[same] == '\0') return 1;
  }
  return 0;
}

// Returns 1 if the runtime would be the program's first library without the
// stub. Otherwise it would refuse to start without the stub as well.
static int RuntimeComesNext(void) {
  const struct link_map* own = ObjectOf((const void*)&RuntimeComesNext);
  if (own == NULL || own->l_next == NULL) return 0;
  for (const struct link_map* each = own->l_prev; each != NULL;
       each = each->l_prev) {
    // The program has no name.
    if (each->l_name[0] != '\0' && !Contains(each->l_name, "linux-vdso")) {
      return 0;
    }
  }
  return Contains(own->l_next->l_name, "libasan.so") ||
         Contains(own->l_next->l_name, "libclang_rt.asan");
}

// Returns options for AddressSanitizer, which asks each program for its own.
// The runtime ends the process if another library comes first, since that could
// hide the functions that the runtime replaces. The stub has one of them,
// dlopen(), and passes it on.
__attribute__((visibility("default"))) const char* __asan_default_options(
    void) {
  return RuntimeComesNext() ? "verify_asan_link_order=0" : "";
}
