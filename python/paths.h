// Reports the network paths of this process's clients.

#ifndef PENSTOCK_PYTHON_PATHS_H_
#define PENSTOCK_PYTHON_PATHS_H_

#include <memory>
#include <vector>

#include "grpcpp/channel.h"
#include "penstock/penstock.h"

namespace penstock::python {

// Makes AllPaths() report on `channel` while the channel lives. Thread-safe.
void Remember(const std::shared_ptr<grpc::Channel>& channel);

// Returns a report for each live connection of the remembered channels. Takes
// locks of gRPC, so call it Unlocked. Thread-safe.
std::vector<PathReport> AllPaths();

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_PATHS_H_
