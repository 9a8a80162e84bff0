// Keeps a forked child away from its parent's gRPC.

#ifndef PENSTOCK_PYTHON_GRPC_AT_FORKS_H_
#define PENSTOCK_PYTHON_GRPC_AT_FORKS_H_

#include <string>

namespace penstock::python {

// Makes CheckGrpc() learn of each fork of the interpreter by os.fork() or
// multiprocessing. Call once, while the module is imported.
void WatchForks();

// Throws FailedPrecondition, with the remedy, in a process that was forked
// while gRPC was in use. `name` names the object to be made, for the message.
// Call it with the GIL.
//
// A forked child has none of gRPC's threads, so its calls would hang. The child
// and its parent share gRPC's epoll set: for an event of the child's socket,
// the parent would get a pointer of the child, and crash.
void CheckGrpc(const std::string& name);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_GRPC_AT_FORKS_H_
