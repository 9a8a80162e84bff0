// Overrides dlopen(), to make Python load another cygrpc, and dlerror(), to
// report a refusal.

#include <dlfcn.h>
#include <stdio.h>

#include "preload/objects.h"
#include "preload/python.h"

typedef char* (*Dlerror)(void);

// Declares a thread-local variable. With this TLS model, the variable needs no
// memory at run time, and no function that a sanitizer replaces.
#define PENSTOCK_OF_THREAD \
  static __thread __attribute__((tls_model("initial-exec")))

// True if this thread's last dlopen() was refused, until dlerror() is called.
PENSTOCK_OF_THREAD int was_refused;
PENSTOCK_OF_THREAD char refusal[1024];

static Dlerror real_dlerror;

// Looks up the next dlerror() early. A later lookup would discard the pending
// error.
__attribute__((constructor)) static void FindDlerror(void) {
  real_dlerror = (Dlerror)dlsym(RTLD_NEXT, "dlerror");
}

void* RefuseToOpen(const char* file, const char* why) {
  snprintf(refusal, sizeof refusal, "%s: Penstock is required but not used: %s",
           file, why);
  was_refused = 1;
  return NULL;
}

// Replaces the loader's dlopen(), and jumps to it. The loader searches for
// `file` on behalf of the calling library, which it identifies by the return
// address. Therefore this function must jump to the loader's function instead
// of calling it. -O2 ensures that in every build.
__attribute__((visibility("default"))) void* dlopen(const char* file,
                                                    int mode) {
  const Dlopen real = RealDlopen();
  was_refused = 0;
  return IsCygrpc(file) ? OpenCygrpc(file, mode) : real(file, mode);
}

__attribute__((visibility("default"))) char* dlerror(void) {
  if (was_refused) {
    was_refused = 0;
    return refusal;
  }
  if (real_dlerror == NULL) FindDlerror();
  return real_dlerror();
}
