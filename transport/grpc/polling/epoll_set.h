// Finds the epoll set of gRPC's engine "epoll1", and checks it for events.

#ifndef PENSTOCK_TRANSPORT_GRPC_POLLING_EPOLL_SET_H_
#define PENSTOCK_TRANSPORT_GRPC_POLLING_EPOLL_SET_H_

#include <cstdint>

#include "src/core/lib/iomgr/ev_posix.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {

// Returns the descriptor of epoll1's epoll set, for which gRPC has no function.
// `fd` must be a descriptor that only this set contains, and for which epoll1
// has made `entry` (with track_err = false). Returns -1 if the set does not
// contain `fd`; for example, gRPC cannot add a descriptor once the user has
// reached fs.epoll.max_user_watches. Makes one system call for each descriptor
// with a number below that of the set.
int FindEpollSet(int fd, grpc_fd* entry);

// The epoll set of epoll1, whose descriptor gRPC keeps private. Used by one
// thread at a time: the designated poller of epoll1.
class EpollSet {
 public:
  // `engine` must be epoll1, and must outlive this object.
  explicit EpollSet(const grpc_event_engine_vtable& engine) : engine_(engine) {}

  // Returns true if the kernel has events for the set. Consumes no event, and
  // does not block. Does not see events that epoll1 has already read from the
  // kernel: epoll1 reads many events in one call, and handles one of them in
  // each pollset_work(). Only the designated poller knows if such events are
  // left. Also returns true if the set is unknown, for example because no
  // descriptor is left for the search. The first call searches for the set; a
  // later call costs one system call. Call in an ExecCtx, without locks.
  bool MayHaveEvents();
  // Forgets the descriptor, because gRPC closes it.
  void Forget() { fd_ = kUnknown; }

 private:
  static constexpr int kUnknown = -2;
  static constexpr int kNone = -1;

  bool IsKnown();
  int Search() const;

  const grpc_event_engine_vtable& engine_;
  int fd_ = kUnknown;
  // The number of forks at the time of the search. The child of a fork searches
  // again, because gRPC may make a new set there.
  uint32_t fork_count_ = 0;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_POLLING_EPOLL_SET_H_
