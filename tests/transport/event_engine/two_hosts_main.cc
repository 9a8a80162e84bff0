// One of two hosts with RDMA devices: a server that echoes by TLS, or its
// client. The client fails unless the connection moves to RDMA.
//
//   two_hosts serve IP   serves until a client with RDMA has come and gone
//   two_hosts call IP    calls the server
//   two_hosts lose IP    calls the server, also after RDMA has failed

#include <cstdio>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "tests/e2e/certificates.h"
#include "tests/transport/event_engine/echo.h"

namespace penstock {
namespace event_engine {
namespace {

constexpr int kPort = 50051;
// Limits each wait. A virtual machine is slow.
constexpr absl::Duration kPatience = absl::Minutes(3);

std::shared_ptr<grpc::ServerCredentials> ServerCredentials() {
  const auto& certificates = e2e::TestCertificates();
  if (!certificates.has_value()) return nullptr;
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back(
      {certificates->server.key, certificates->server.certificate});
  return grpc::SslServerCredentials(options);
}

// Returns credentials that accept any certificate, because each host makes its
// own authority.
std::shared_ptr<grpc::ChannelCredentials> ClientCredentials() {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
  return grpc::experimental::TlsCredentials(options);
}

int Fail(const std::string& what) {
  std::fprintf(stderr, "two_hosts: %s\n", what.c_str());
  return 1;
}

int Serve(const std::string& ip) {
  const auto credentials = ServerCredentials();
  if (credentials == nullptr) return Fail("openssl makes no certificates");
  EchoServer server(Options(), credentials, kPort, ip);
  if (server.port() == 0) return Fail("cannot listen at " + ip);
  bool was_called = false;
  for (const absl::Time end = absl::Now() + kPatience; absl::Now() < end;
       absl::SleepFor(absl::Milliseconds(100))) {
    const auto reports = DescribePaths(*server.server());
    if (was_called && reports.empty()) return 0;
    for (const PathReport& report : reports) {
      was_called |= report.path == "verbs";
    }
  }
  return Fail("the client did not come, or did not go");
}

std::string PathOf(const std::shared_ptr<grpc::Channel>& channel) {
  for (const PathReport& report : DescribePaths(*channel)) {
    if (report.path != "http2") return report.path + ": " + report.detail;
    return report.path + ": " + report.reason;
  }
  return "none";
}

// Calls until the path is verbs.
bool ReachesRdma(const std::shared_ptr<grpc::Channel>& channel) {
  for (const absl::Time end = absl::Now() + kPatience; absl::Now() < end;
       absl::SleepFor(absl::Milliseconds(100))) {
    const grpc::Status status = Echo(channel, "hello");
    const std::string path = PathOf(channel);
    if (status.ok() && path.rfind("verbs", 0) == 0) return true;
  }
  return false;
}

// Calls until the path is TCP. No call may fail.
int CallUntilLost(const std::shared_ptr<grpc::Channel>& channel) {
  const std::string message(200 * 1000, 'x');
  for (const absl::Time end = absl::Now() + kPatience; absl::Now() < end;) {
    const grpc::Status status = Echo(channel, message);
    if (!status.ok()) return Fail(status.error_message());
    if (PathOf(channel).rfind("http2", 0) != 0) continue;
    std::printf("path: %s\n", PathOf(channel).c_str());
    return 0;
  }
  return Fail("the path was not lost");
}

int Call(const std::string& ip, bool loses) {
  const std::string target = ip + ":" + std::to_string(kPort);
  const auto channel = NewChannel(target, Options(), ClientCredentials());
  if (!ReachesRdma(channel)) return Fail("the path is " + PathOf(channel));
  std::printf("path: %s\n", PathOf(channel).c_str());
  for (size_t size : {8, 64 * 1024, 1024 * 1024}) {
    for (int i = 0; i < 5; ++i) {
      const grpc::Status status =
          Echo(channel, std::string(size, static_cast<char>('a' + i)));
      if (!status.ok()) return Fail(status.error_message());
    }
  }
  if (PathOf(channel).rfind("verbs", 0) != 0) return Fail("the path was lost");
  std::printf("all calls were echoed over RDMA\n");
  std::fflush(stdout);
  return loses ? CallUntilLost(channel) : 0;
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock

int main(int argc, char** argv) {
  const std::string role = argc == 3 ? argv[1] : "";
  if (role == "serve") return penstock::event_engine::Serve(argv[2]);
  if (role == "call" || role == "lose") {
    return penstock::event_engine::Call(argv[2], role == "lose");
  }
  std::fprintf(stderr, "usage: two_hosts serve|call|lose IP\n");
  return 2;
}
