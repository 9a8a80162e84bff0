// An epoll set for one thread that sleeps.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_THREADS_WATCHES_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_THREADS_WATCHES_H_

#include <atomic>
#include <cstddef>
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
//
// A spinning thread sees doorbells in the paths themselves. For sockets, it
// calls Look().
class Watches {
 public:
  // Never 0, and never reused.
  using Id = uint64_t;
  using Callback = std::function<void()>;

  static absl::StatusOr<std::unique_ptr<Watches>> Create();

  // Calls `callback` at each edge of input at `fd`. The caller keeps `fd` open
  // until Remove().
  absl::StatusOr<Id> Add(int fd, Callback callback);
  // Calls `callback` at each edge of a socket: input, room for output, or the
  // peer's end. Otherwise like Add().
  absl::StatusOr<Id> AddSocket(int fd, Callback callback);
  // Returns true if there are sockets.
  bool has_sockets() const {
    return sockets_.load(std::memory_order_relaxed) > 0;
  }
  // Prevents further calls of the callback. One call may still be running, so
  // the callback must own everything that it uses. Ignores 0. Does nothing in
  // the child of a fork, because the parent still uses the epoll set.
  void Remove(Id id);

  // Sleeps until there is an event, and calls the callbacks of the events.
  void Sleep();
  // Calls the callbacks of events that have already happened. Returns true if
  // there were any. Does not consume a Wake(), which stays for Sleep().
  bool Look();
  // Ends the present or the next Sleep().
  void Wake();

 private:
  struct Watched {
    int fd;
    std::shared_ptr<Callback> callback;
    bool is_socket;
  };

  Watches(base::UniqueFd epoll, base::UniqueFd wake);
  absl::StatusOr<Id> AddFor(int fd, uint32_t events, bool is_socket,
                            Callback callback);
  void Dispatch(Id id);

  const uint32_t fork_count_;
  const base::UniqueFd epoll_;
  const base::UniqueFd wake_;
  std::atomic<size_t> sockets_{0};
  base::Mutex mu_;
  Id next_id_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<Id, Watched> watched_ ABSL_GUARDED_BY(mu_);
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_THREADS_WATCHES_H_
