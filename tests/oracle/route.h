// The routes that calls can take here.

#ifndef PENSTOCK_TESTS_ORACLE_ROUTE_H_
#define PENSTOCK_TESTS_ORACLE_ROUTE_H_

#include <memory>
#include <string>
#include <vector>

#include "penstock/penstock.h"

namespace penstock::oracle {

struct Route {
  std::string name;    // "stock", "shm", "shm-copy", "tcp", "verbs"
  bool stock = false;  // neither side is Penstock's
  std::string fabric;  // what DescribePaths calls it
  Options options;

  void Enable(grpc::ServerBuilder* builder) const;
  std::shared_ptr<grpc::ChannelCredentials> Credentials() const;
};

// Returns null if there is no route of that name.
const Route* FindRoute(const std::string& name);

// Breaks the shared memory path between both sides of this process. Each side
// is told that the other has closed its path, and both go on reading what they
// have. (The end of shm's socket would say that nothing is read any more;
// memory would then be reused while it is read.)
void BreakSharedMemory();

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_ROUTE_H_
