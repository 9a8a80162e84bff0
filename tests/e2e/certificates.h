// Keys and certificates, made by the openssl command when a test asks for them.

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
  Identity impostor;  // as the client, but of an authority that nobody trusts
};

// The same in each call; nothing where openssl fails.
const absl::optional<Certificates>& TestCertificates();

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_CERTIFICATES_H_
