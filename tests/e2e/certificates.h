// Makes keys and certificates with the openssl command, when a test asks for
// them.

#ifndef PENSTOCK_TESTS_E2E_CERTIFICATES_H_
#define PENSTOCK_TESTS_E2E_CERTIFICATES_H_

#include <string>

#include "absl/types/optional.h"

namespace penstock::e2e {

// In PEM.
struct Identity {
  std::string key;
  std::string certificate;
};

struct Certificates {
  Identity authority;
  Identity server;    // for 127.0.0.1 and "penstock.test"
  Identity client;    // "client.test", by its common name too
  Identity impostor;  // as the client, but by an authority that nobody trusts
};

// Returns the same in each call; nothing if openssl fails.
const absl::optional<Certificates>& TestCertificates();

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_CERTIFICATES_H_
