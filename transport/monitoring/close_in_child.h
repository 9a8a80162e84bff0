// Sockets that a forked child must not keep.

#ifndef PENSTOCK_TRANSPORT_MONITORING_CLOSE_IN_CHILD_H_
#define PENSTOCK_TRANSPORT_MONITORING_CLOSE_IN_CHILD_H_

namespace penstock {
namespace monitoring {

// Has the child of each fork close its copy of `fd`, which this process never
// closes: with it, the child would keep an address for which it does not
// answer. Up to 16 descriptors; further ones stay open. Thread-safe.
void CloseInChild(int fd);

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_CLOSE_IN_CHILD_H_
