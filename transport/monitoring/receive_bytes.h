// Reads from a UNIX socket whose peer may be hostile.

#ifndef PENSTOCK_TRANSPORT_MONITORING_RECEIVE_BYTES_H_
#define PENSTOCK_TRANSPORT_MONITORING_RECEIVE_BYTES_H_

#include <sys/types.h>

#include <cstddef>

namespace penstock {
namespace monitoring {

// Reads like recv() with MSG_DONTWAIT, but leaves descriptors in the socket. If
// descriptors come next, returns -1 with errno EPROTO. recv() would close the
// descriptors, and a hostile sender can make closing take as long as it likes.
// Descriptors may remain in the socket, so let a progress::ForeignFd close the
// socket.
ssize_t ReceiveBytes(int socket, void* buffer, size_t size);

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_RECEIVE_BYTES_H_
