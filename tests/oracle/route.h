// The routes of calls.

#ifndef PENSTOCK_TESTS_ORACLE_ROUTE_H_
#define PENSTOCK_TESTS_ORACLE_ROUTE_H_

#include <memory>
#include <string>
#include <vector>

#include "penstock/penstock.h"

namespace penstock::oracle {

struct Route {
  std::string name;    // "stock", "shm", "shm-copy", "tcp", "verbs"
  bool stock = false;  // neither side uses Penstock
  std::string fabric;  // the name in DescribePaths()
  Options options;

  void Enable(grpc::ServerBuilder* builder) const;
  std::shared_ptr<grpc::ChannelCredentials> Credentials() const;
};

// Returns the route with this name, or null.
const Route* FindRoute(const std::string& name);

// Breaks the shared memory path between both sides of this process. Both sides
// are told that the other has closed its path, and both continue reading their
// input. (The end of shm's socket would mean that nobody reads any more; memory
// would then be reused while it is read.)
void BreakSharedMemory();

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_ROUTE_H_
