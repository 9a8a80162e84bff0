// Security of a Python program's servers and clients.

#ifndef PENSTOCK_PYTHON_CREDENTIALS_H_
#define PENSTOCK_PYTHON_CREDENTIALS_H_

#include <memory>

#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"

namespace penstock::python {

// The implementations of Python's classes ChannelCredentials and
// ServerCredentials. The classes of the package grpcio cannot be used: grpcio
// contains another gRPC library.
struct ChannelCredentials {
  std::shared_ptr<grpc::ChannelCredentials> credentials;
};
struct ServerCredentials {
  std::shared_ptr<grpc::ServerCredentials> credentials;
};

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_CREDENTIALS_H_
