// Connects to parameter servers.

#ifndef PENSTOCK_PYTHON_PS_CONNECT_H_
#define PENSTOCK_PYTHON_PS_CONNECT_H_

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ps/client/training_connection.h"
#include "ps/tls.h"

namespace penstock::python {

struct PsServers {
  std::vector<std::string> addresses;
  ps::TlsFiles tls;
  std::string secret;  // path of a file; empty for none
  bool stock = false;  // use stock gRPC, without Penstock
};

// Reads the arguments that penstock/ps.py passes. Throws an error that names
// the argument.
PsServers PsServersOf(const pybind11::dict& arguments);

// Makes a channel to each server; describe_paths() reports on these channels.
// Reads the TLS files and the secret. Returns the errors of ClientSecurity()
// and ReadSecretToSend(). Call it without the GIL.
absl::StatusOr<ps::TrainingConnection::Channels> Connect(
    const PsServers& servers);

// Returns a function that later makes such a channel to any server, with the
// TLS files and the secret that are read now.
absl::StatusOr<ps::Router::Connect> Connector(const PsServers& servers);

// Makes a connection's servers write a checkpoint. Returns (step,
// is_incremental, bytes, removed steps), or throws. Ctrl-C ends the wait.
pybind11::tuple TakeCheckpoint(
    std::shared_ptr<const ps::TrainingConnection> connection,
    pybind11::handle incremental, pybind11::handle keep,
    pybind11::handle timeout);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_PS_CONNECT_H_
