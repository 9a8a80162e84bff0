// Makes keys and certificates on demand, with the openssl command.

#ifndef PENSTOCK_TESTS_E2E_CERTIFICATES_H_
#define PENSTOCK_TESTS_E2E_CERTIFICATES_H_

#include <string>

#include "absl/types/optional.h"

namespace penstock::e2e {

// A key and a certificate in PEM.
struct Identity {
  std::string key;
  std::string certificate;
};

struct Certificates {
  Identity authority;
  Identity server;    // for 127.0.0.1 and "penstock.test"
  Identity client;    // "client.test", also as the common name
  Identity impostor;  // like the client, but signed by an untrusted authority
};

// Returns the same certificates in each call, or nothing if openssl fails.
const absl::optional<Certificates>& TestCertificates();

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_CERTIFICATES_H_
