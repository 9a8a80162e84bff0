// The first call of a client.

#ifndef PENSTOCK_PYTHON_RPC_HELLO_H_
#define PENSTOCK_PYTHON_RPC_HELLO_H_

namespace penstock::python {

// The method of the first call, which the server itself answers. Cannot be a
// method of gRPC, because those begin with a slash.
constexpr char kHello[] = "hello";

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_RPC_HELLO_H_
