#include "preload/sanitizer.h"

#include <dlfcn.h>
#include <stddef.h>

#include "preload/objects.h"

static const struct {
  const char* function;  // a function of the runtime
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

// Replaces strstr(), because AddressSanitizer intercepts strstr() and is not
// initialised yet.
static int Contains(const char* text, const char* part) {
  for (; *text != '\0'; ++text) {
    size_t same = 0;
    while (part[same] != '\0' && text[same] == part[same]) ++same;
    if (part[same] == '\0') return 1;
  }
  return 0;
}

// Returns 1 if the sanitizer's runtime would be the program's first library
// without the stub. Otherwise the runtime would refuse to start even without
// the stub.
static int RuntimeComesNext(void) {
  const struct link_map* own = ObjectOf((const void*)&RuntimeComesNext);
  if (own == NULL || own->l_next == NULL) return 0;
  for (const struct link_map* each = own->l_prev; each != NULL;
       each = each->l_prev) {
    // Skips the program, whose name is empty, and the vDSO.
    if (each->l_name[0] != '\0' && !Contains(each->l_name, "linux-vdso")) {
      return 0;
    }
  }
  return Contains(own->l_next->l_name, "libasan.so") ||
         Contains(own->l_next->l_name, "libclang_rt.asan");
}

// Returns the default options of AddressSanitizer. Disables its link order
// check if only the stub would make the check fail. The check ends the process
// if another library is loaded before the runtime, because that library could
// hide intercepted functions. The stub hides only dlopen(), and forwards to the
// runtime's dlopen().
__attribute__((visibility("default"))) const char* __asan_default_options(
    void) {
  return RuntimeComesNext() ? "verify_asan_link_order=0" : "";
}
