#include "tests/e2e/certificates.h"

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/process/child.h"

namespace penstock::e2e {
namespace {

// Returns a path in the folder of this run's temporary files.
std::string PathOf(const std::string& name) {
  const char* folder = std::getenv("TEST_TMPDIR");
  return absl::StrCat(folder == nullptr ? "/tmp" : folder, "/", name);
}

std::string ReadFile(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(PathOf(name)).rdbuf();
  return text.str();
}

// Makes a certificate with this subject, valid for a day. Signed by `issuer`;
// an empty issuer means self-signed.
absl::optional<Identity> Make(const std::string& name,
                              const std::string& subject,
                              const std::string& issuer,
                              const std::string& alternatives) {
  const std::string key = PathOf(name + ".key");
  const std::string certificate = PathOf(name + ".pem");
  std::vector<std::string> command = {"openssl",
                                      "req",
                                      "-x509",
                                      "-new",
                                      "-nodes",
                                      "-newkey",
                                      "ec",
                                      "-pkeyopt",
                                      "ec_paramgen_curve:P-256",
                                      "-days",
                                      "1",
                                      "-subj",
                                      absl::StrCat("/CN=", subject),
                                      "-keyout",
                                      key,
                                      "-out",
                                      certificate};
  if (!issuer.empty()) {
    command.insert(
        command.end(),
        {"-CA", PathOf(issuer + ".pem"), "-CAkey", PathOf(issuer + ".key"),
         "-addext", absl::StrCat("subjectAltName=", alternatives)});
  }
  auto openssl = process::Child::Start(command);
  if (openssl == nullptr) return absl::nullopt;
  const std::string said = openssl->ReadAll();
  if (openssl->Finish() != 0) {
    std::cerr << "openssl: " << said << "\n";
    return absl::nullopt;
  }
  return Identity{ReadFile(name + ".key"), ReadFile(name + ".pem")};
}

absl::optional<Certificates> MakeAll() {
  const auto authority = Make("authority", "Penstock test authority", "", "");
  const auto nobody = Make("nobody", "Nobody's authority", "", "");
  const auto server = Make("server", "penstock.test", "authority",
                           "DNS:penstock.test,IP:127.0.0.1");
  const auto client = Make("client", "client.test", "authority",
                           "DNS:client.test,URI:spiffe://penstock.test/client");
  const auto impostor =
      Make("impostor", "client.test", "nobody", "DNS:client.test");
  if (!authority || !server || !client || !impostor) return absl::nullopt;
  return Certificates{*authority, *server, *client, *impostor};
}

}  // namespace

const absl::optional<Certificates>& TestCertificates() {
  static const auto* const made = new absl::optional<Certificates>(MakeAll());
  return *made;
}

}  // namespace penstock::e2e
