// Descriptors for which one thread sleeps.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_THREADS_WATCHES_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_THREADS_WATCHES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "transport/base/mutex.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace event_engine {

// An epoll set with callbacks, and an eventfd that wakes the sleeper.
// Thread-safe, but only one thread at a time may sleep.
class Watches {
 public:
  // Never 0, and never reused.
  using Id = uint64_t;
  using Callback = std::function<void()>;

  static absl::StatusOr<std::unique_ptr<Watches>> Create();

  // Calls `callback` at each edge of input at `fd`. The caller keeps `fd` open
  // until Remove().
  absl::StatusOr<Id> Add(int fd, Callback callback);
  // Prevents further calls of the callback. One call may still be running, so
  // the callback must own everything that it uses. Ignores 0.
  void Remove(Id id);

  // Sleeps until there is an event, and calls the callbacks.
  void Sleep();
  // Ends the present or the next Sleep().
  void Wake();

 private:
  struct Watched {
    int fd;
    std::shared_ptr<Callback> callback;
  };

  Watches(base::UniqueFd epoll, base::UniqueFd wake);
  void Dispatch(Id id);

  const base::UniqueFd epoll_;
  const base::UniqueFd wake_;
  base::Mutex mu_;
  Id next_id_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<Id, Watched> watched_ ABSL_GUARDED_BY(mu_);
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_THREADS_WATCHES_H_
