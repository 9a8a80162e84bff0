// Registers a parameter server in etcd.

#ifndef PENSTOCK_PS_REGISTER_H_
#define PENSTOCK_PS_REGISTER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ps/membership/membership.h"

namespace penstock::ps {

// The flags about etcd, by which workers find the server.
struct EtcdFlags {
  std::string endpoints;  // HOST:PORT, with commas; empty: no etcd
  std::string prefix;     // of the training's keys
  unsigned servers = 1;   // of the training
  std::string name;       // empty: the address
  std::string advertise;  // the address for workers; empty: from --listen
};

// Registers a server that listens at `address`, until the result is destroyed.
// Logs a line when etcd is away and when it is back; unless `quiet`, also that
// the server is registered. Returns null without endpoints, and the errors of
// Membership::Open() and Membership::RegisterServer().
absl::StatusOr<std::unique_ptr<membership::Membership>> RegisterServer(
    const EtcdFlags& flags, const std::string& address, bool quiet);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_REGISTER_H_
