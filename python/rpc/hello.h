// The first call of a client.

#ifndef PENSTOCK_PYTHON_RPC_HELLO_H_
#define PENSTOCK_PYTHON_RPC_HELLO_H_

namespace penstock::python {

// The method that the server itself answers. Methods of gRPC differ, because
// they begin with a slash.
constexpr char kHello[] = "hello";

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_RPC_HELLO_H_
