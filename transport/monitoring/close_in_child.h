// Sockets that a forked child must not keep.

#ifndef PENSTOCK_TRANSPORT_MONITORING_CLOSE_IN_CHILD_H_
#define PENSTOCK_TRANSPORT_MONITORING_CLOSE_IN_CHILD_H_

namespace penstock {
namespace monitoring {

// Makes the child of each fork close its copy of `fd`. Without this, the child
// would hold a listening address at which it never answers. This process must
// never close `fd`. Stores up to 16 descriptors; further descriptors stay open
// in children. Thread-safe.
void CloseInChild(int fd);

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_CLOSE_IN_CHILD_H_
