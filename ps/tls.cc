#include "ps/tls.h"

#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/openssl_at_exit.h"

namespace penstock::ps {
namespace {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty()) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", path, ", or it is empty"));
  }
  return text;
}

// The contents of the files.
struct Pem {
  std::string ca;
  std::string cert;
  std::string key;
};

absl::StatusOr<Pem> Read(const TlsFiles& files) {
  Pem pem;
  for (auto [path, text] :
       {std::pair(&files.ca, &pem.ca), std::pair(&files.cert, &pem.cert),
        std::pair(&files.key, &pem.key)}) {
    absl::StatusOr<std::string> read = ReadFile(*path);
    if (!read.ok()) return read.status();
    *text = *std::move(read);
  }
  return pem;
}

}  // namespace

void KeepTlsAtExit() { base::KeepOpenSslAtExit(); }

absl::Status TlsFiles::Check() const {
  if (cert.empty() == key.empty() && cert.empty() == ca.empty()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "--ca, --cert and --key belong together: give all three");
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ServerSecurity(
    const TlsFiles& files) {
  if (!files.given()) return grpc::InsecureServerCredentials();
  absl::StatusOr<Pem> pem = Read(files);
  if (!pem.ok()) return pem.status();
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = pem->ca;
  options.pem_key_cert_pairs.push_back({pem->key, pem->cert});
  return grpc::SslServerCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ClientSecurity(
    const TlsFiles& files) {
  if (!files.given()) return grpc::InsecureChannelCredentials();
  absl::StatusOr<Pem> pem = Read(files);
  if (!pem.ok()) return pem.status();
  return grpc::SslCredentials({pem->ca, pem->key, pem->cert});
}

}  // namespace penstock::ps
