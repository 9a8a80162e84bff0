// The certificates of a victim and of its peers.

#ifndef PENSTOCK_TESTS_ADVERSARY_SECURITY_H_
#define PENSTOCK_TESTS_ADVERSARY_SECURITY_H_

#include <memory>
#include <string>
#include <vector>

#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"

namespace penstock::adversary {

// The trusted authority and the own certificate of a process, in PEM. If all
// are empty, there is no TLS. Otherwise both sides present a certificate.
struct Identity {
  std::string authority;
  std::string key;
  std::string certificate;

  bool has_tls() const { return !authority.empty(); }
};

// Convert an identity to environment variables and back, to pass the identity
// from a test to its victim.
std::vector<std::string> ToEnvironment(const Identity& identity);
Identity FromEnvironment();

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(
    const Identity& identity);
std::shared_ptr<grpc::ServerCredentials> ServerCredentials(
    const Identity& identity);

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_SECURITY_H_
