// Replaces grpcio's module cygrpc, which contains a gRPC core with hidden
// symbols that cannot be intercepted. The replacement is next to this library,
// and is built from the same sources, but linked to the system's libgrpc. With
// another grpcio, the package penstock.grpc replaces the functions that make
// channels and servers.

#include "preload/python.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "preload/library.h"
#include "preload/objects.h"
#include "preload/package.h"
#include "preload/sanitizer.h"
#include "preload/say.h"

static const char kFolder[] = "/grpc/_cython/cygrpc.";

int IsCygrpc(const char* file) {
  const char* slash = file == NULL ? NULL : strrchr(file, '/');
  const size_t before = sizeof kFolder - 1 - strlen("/cygrpc.");
  return slash != NULL && (size_t)(slash - file) >= before &&
         strncmp(slash - before, kFolder, sizeof kFolder - 1) == 0;
}

// Returns true if the module's package is grpcio 1.51.1, the release of
// Penstock's module. A Python file of the package names the release.
static int IsOurRelease(const char* file) {
  char path[PATH_MAX];
  const int package = (int)(strstr(file, "/_cython/cygrpc.") - file);
  const int length =
      snprintf(path, sizeof path, "%.*s/_grpcio_metadata.py", package, file);
  if (length >= (int)sizeof path) return 0;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return 0;
  char text[256];
  const ssize_t got = read(fd, text, sizeof text - 1);
  close(fd);
  if (got < 0) return 0;
  text[got] = '\0';
  return strstr(text, "__version__ = \"\"\"1.51.1\"\"\"") != NULL;
}

// Returns true if the program wants to fork. Reads the variable as cygrpc does.
// Penstock leaves such programs alone, because the fork handlers of cygrpc do
// not work with a shared libgrpc.
static int WantsForks(void) {
  static const char* const kTrue[] = {"1", "yes", "true"};
  const char* set = secure_getenv("GRPC_ENABLE_FORK_SUPPORT");
  for (size_t i = 0; i < sizeof kTrue / sizeof *kTrue; ++i) {
    if (set != NULL && strcasecmp(set, kTrue[i]) == 0) return 1;
  }
  return 0;
}

// Writes the path of Penstock's module to `ours`, and returns null. If that
// module cannot be used, returns the reason.
static const char* Refusal(const char* file, char* ours, size_t size) {
  if (!IsOurRelease(file)) return "it is not of grpcio 1.51.1";
  if (WantsForks()) return "GRPC_ENABLE_FORK_SUPPORT is set";
  char name[NAME_MAX + sizeof "python/"];
  snprintf(name, sizeof name, "python/%s", strrchr(file, '/') + 1);
  if (!PathBeside(name, ours, size) || access(ours, R_OK) != 0) {
    return "there is no module for this release of Python beside Penstock";
  }
  return NULL;
}

// Returns the reason for leaving each grpcio alone, or null.
static const char* RefusalOfAll(void) {
  if (Sanitizer() != NULL) return "the program runs under a sanitizer";
  return NULL;
}

static void* OpenStock(const char* file, int mode, const char* why) {
  Say("Penstock is not used for %s: %s", file, why);
  return IsRequired() ? RefuseToOpen(file, why) : RealDlopen()(file, mode);
}

// Opens `file`, which Penstock's module cannot replace. `why` is the reason.
// Makes Python use penstock.grpc instead.
static void* OpenForPackage(const char* file, int mode, const char* why) {
  char reason[512];
  // `why` may be a long text of the loader's.
  const size_t length = snprintf(reason, sizeof reason, "%.256s, and ", why);
  if (IsRequired()) {
    snprintf(reason + length, sizeof reason - length,
             "penstock.grpc leaves some calls to grpcio");
  } else if (UsePackage(file, reason + length, sizeof reason - length)) {
    return RealDlopen()(file, mode);
  }
  return OpenStock(file, mode, reason);
}

void* OpenCygrpc(const char* file, int mode) {
  char ours[PATH_MAX];
  if (IsOff()) return RealDlopen()(file, mode);
  const char* refusal = RefusalOfAll();
  if (refusal != NULL) return OpenStock(file, mode, refusal);
  refusal = Refusal(file, ours, sizeof ours);
  if (refusal != NULL) return OpenForPackage(file, mode, refusal);
  void* handle = RealDlopen()(ours, mode);
  // Opens the module by penstock.grpc instead. Needed for a Python with
  // libraries of its own, which may be incompatible.
  return handle != NULL ? handle : OpenForPackage(file, mode, dlerror());
}
