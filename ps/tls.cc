#include "ps/tls.h"

#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/pem.h"
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

struct Pem {
  PemFile ca;
  PemFile cert;
  PemFile key;
};

absl::StatusOr<Pem> Read(const TlsFiles& files) {
  absl::Status status = files.Check();
  if (!status.ok()) return status;
  Pem pem{{files.ca, ""}, {files.cert, ""}, {files.key, ""}};
  for (PemFile* file : {&pem.ca, &pem.cert, &pem.key}) {
    absl::StatusOr<std::string> read = ReadFile(file->path);
    if (!read.ok()) return read.status();
    file->text = *std::move(read);
  }
  status = CheckPem(pem.ca, pem.cert, pem.key);
  if (!status.ok()) return status;
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
  options.pem_root_certs = pem->ca.text;
  options.pem_key_cert_pairs.push_back({pem->key.text, pem->cert.text});
  return grpc::SslServerCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ClientSecurity(
    const TlsFiles& files) {
  if (!files.given()) return grpc::InsecureChannelCredentials();
  absl::StatusOr<Pem> pem = Read(files);
  if (!pem.ok()) return pem.status();
  return grpc::SslCredentials({pem->ca.text, pem->key.text, pem->cert.text});
}

}  // namespace penstock::ps
