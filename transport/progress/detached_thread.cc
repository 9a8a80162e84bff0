#include "transport/progress/detached_thread.h"

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "transport/base/address_space.h"
#include "transport/base/status_util.h"

namespace penstock {
namespace progress {

namespace {

// Returns why there is no thread. pthread_create() has EAGAIN for two limits.
absl::Status CannotStart(const char* name, int error, size_t stack) {
  const std::string operation = absl::StrCat("pthread_create of ", name);
  if (error != EAGAIN) return base::ErrnoStatus(error, operation);
  if (base::ExceedsAddressSpace(stack)) {
    return base::NoAddressSpace(operation, stack);
  }
  return absl::ResourceExhaustedError(
      absl::StrCat(operation, ": too many threads; raise ulimit -u"));
}

}  // namespace

absl::Status StartDetachedThread(const char* name, void* (*main)(void*),
                                 void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  // Blocks all signals, which are for the threads of the application.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, main, argument);
  size_t stack = 0;
  pthread_attr_getstacksize(&attributes, &stack);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error != 0) return CannotStart(name, error, stack);
  pthread_setname_np(thread, name);
  return absl::OkStatus();
}

}  // namespace progress
}  // namespace penstock
