// What calls can go over here.

#ifndef PENSTOCK_TESTS_ORACLE_ROUTE_H_
#define PENSTOCK_TESTS_ORACLE_ROUTE_H_

#include <memory>
#include <string>
#include <vector>

#include "transport/penstock.h"

namespace penstock::oracle {

struct Route {
  std::string name;    // "stock", "shm", "shm-copy", "tcp", "verbs"
  bool stock = false;  // neither side is Penstock's
  std::string fabric;  // what DescribePaths calls it
  Options options;

  void Enable(grpc::ServerBuilder* builder) const;
  std::shared_ptr<grpc::ChannelCredentials> Credentials() const;
};

// Null where there is none of that name.
const Route* FindRoute(const std::string& name);

// Ends the shared memory between both sides of this process, as where a path is
// closed while both go on reading what they have: each side believes that the
// other has closed. (The end of shm's socket would say that nothing is read any
// more, and memory would be used anew under its readers.)
void BreakSharedMemory();

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_ROUTE_H_
