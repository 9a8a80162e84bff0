// Keepalive of the data plane, as Python's code sets it.

#ifndef PENSTOCK_PYTHON_RPC_KEEPALIVE_H_
#define PENSTOCK_PYTHON_RPC_KEEPALIVE_H_

#include "absl/time/time.h"
#include "transport/connection/keepalive.h"
#include "transport/rpc/client.h"

namespace penstock::python {

// The arguments of keepalive, in Python's units. The default values are those
// of transport/rpc.
struct KeepaliveArguments {
  double time = absl::ToDoubleSeconds(rpc::DefaultKeepalive().time);
  double timeout = absl::ToDoubleSeconds(rpc::DefaultKeepalive().timeout);
  bool permits_without_calls = rpc::DefaultKeepalive().permit_without_calls;

  // Returns the settings for transport/rpc. An infinite time means no pings.
  connection::Keepalive::Config ToConfig() const {
    connection::Keepalive::Config config = rpc::DefaultKeepalive();
    config.time = absl::Seconds(time);
    config.timeout = absl::Seconds(timeout);
    config.permit_without_calls = permits_without_calls;
    return config;
  }
};

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_RPC_KEEPALIVE_H_
