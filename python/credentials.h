// How a Python program secures its servers and clients.

#ifndef PENSTOCK_PYTHON_CREDENTIALS_H_
#define PENSTOCK_PYTHON_CREDENTIALS_H_

#include <memory>

#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"

namespace penstock::python {

// Python's classes ChannelCredentials and ServerCredentials, which a user gives
// to a client or a server. Those of the package grpcio would not do: they are
// of another library.
struct ChannelCredentials {
  std::shared_ptr<grpc::ChannelCredentials> credentials;
};
struct ServerCredentials {
  std::shared_ptr<grpc::ServerCredentials> credentials;
};

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_CREDENTIALS_H_
