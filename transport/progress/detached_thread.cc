#include "transport/progress/detached_thread.h"

#include <pthread.h>
#include <signal.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "transport/base/status_util.h"

namespace penstock {
namespace progress {

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
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error == EAGAIN) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "pthread_create of ", name, ": too many threads; raise ulimit -u"));
  }
  if (error != 0) return base::ErrnoStatus(error, "pthread_create");
  pthread_setname_np(thread, name);
  return absl::OkStatus();
}

}  // namespace progress
}  // namespace penstock
