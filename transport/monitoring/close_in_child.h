// Sockets that a forked child must not keep.

#ifndef PENSTOCK_TRANSPORT_MONITORING_CLOSE_IN_CHILD_H_
#define PENSTOCK_TRANSPORT_MONITORING_CLOSE_IN_CHILD_H_

namespace penstock {
namespace monitoring {

// Makes the child of each fork close its copy of `fd`, which this process never
// closes. With an open copy, the child would hold an address at which it does
// not answer. Holds up to 16 descriptors; further descriptors stay open in
// children. Thread-safe.
void CloseInChild(int fd);

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_CLOSE_IN_CHILD_H_
