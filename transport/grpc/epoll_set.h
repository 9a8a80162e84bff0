// Looks into the epoll set of gRPC's engine "epoll1".

#ifndef PENSTOCK_TRANSPORT_GRPC_EPOLL_SET_H_
#define PENSTOCK_TRANSPORT_GRPC_EPOLL_SET_H_

#include <cstdint>

#include "src/core/lib/iomgr/ev_posix.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

// Returns the descriptor of epoll1's epoll set, for which gRPC has no function.
// `fd` is a descriptor for which epoll1 has made `entry` (with track_err =
// false), and which only that set can contain. Returns -1 if the set does not
// contain `fd`: gRPC could not add it, for example because the user has reached
// fs.epoll.max_user_watches. Costs one system call for each smaller descriptor.
int FindEpollSet(int fd, grpc_fd* entry);

// The epoll set of epoll1. gRPC does not tell its descriptor. Used by one
// thread at a time: the designated poller of epoll1.
class EpollSet {
 public:
  // `engine` must be epoll1, and must outlive this object.
  explicit EpollSet(const grpc_event_engine_vtable& engine) : engine_(engine) {}

  // Returns true if the set has events. Takes none of the events, and does not
  // block. Ignores events that gRPC has taken from the kernel and handles
  // later: epoll1 takes many events, and handles one in each pollset_work().
  // Only the designated poller knows that no such event is left. Also returns
  // true if the set is unknown, for example because no descriptor is left for
  // the search. The first call searches the set. A later call costs one system
  // call. Call in an ExecCtx, without locks.
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
  // The fork count at the search. gRPC may make a new set in the child of a
  // fork.
  uint32_t fork_count_ = 0;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_EPOLL_SET_H_
