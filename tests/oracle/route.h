// The routes of calls.

#ifndef PENSTOCK_TESTS_ORACLE_ROUTE_H_
#define PENSTOCK_TESTS_ORACLE_ROUTE_H_

#include <memory>
#include <string>
#include <vector>

#include "penstock/penstock.h"

namespace penstock::oracle {

struct Route {
  std::string name;    // "stock", "shm", "shm-copy", "tcp", "verbs", "...-tls"
  bool stock = false;  // neither side uses Penstock
  std::string fabric;  // the name in DescribePaths()
  Options options;
  bool tls = false;

  void Enable(grpc::ServerBuilder* builder) const;
  std::shared_ptr<grpc::ServerCredentials> ServerCredentials() const;
  std::shared_ptr<grpc::ChannelCredentials> Credentials() const;
};

// Returns the route with this name, or null.
const Route* FindRoute(const std::string& name);

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_ROUTE_H_
