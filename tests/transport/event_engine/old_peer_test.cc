// Tests stock gRPC 1.51.1 on either side of a connection. Run in the folder of
// the build; OLD_PEER is the path of old_peer.py.

#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/certificates.h"
#include "tests/process/child.h"
#include "tests/transport/event_engine/echo.h"

namespace penstock {
namespace event_engine {
namespace {

using process::Child;

std::unique_ptr<Child> OldPeer(std::vector<std::string> arguments) {
  std::vector<std::string> command = {"/usr/bin/python3", OLD_PEER};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return Child::Start(std::move(command));
}

std::string FileWith(const std::string& name, const std::string& contents) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << contents;
  return path;
}

// Runs each test without and with TLS.
class OldPeerTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const auto version = OldPeer({"version"});
    ASSERT_NE(version, nullptr);
    if (version->Find("version ").value_or("") != "1.51.1") {
      GTEST_SKIP() << "no python3-grpcio 1.51.1 here";
    }
    if (!GetParam()) return;
    const auto& made = e2e::TestCertificates();
    if (!made) GTEST_SKIP() << "no openssl command here";
    key_ = FileWith("old_peer.key", made->server.key);
    certificate_ = FileWith("old_peer.pem", made->server.certificate);
    roots_ = FileWith("old_peer_roots.pem", made->authority.certificate);
    grpc::SslServerCredentialsOptions of_server;
    of_server.pem_key_cert_pairs.push_back(
        {made->server.key, made->server.certificate});
    server_credentials_ = grpc::SslServerCredentials(of_server);
    grpc::SslCredentialsOptions of_client;
    of_client.pem_root_certs = made->authority.certificate;
    client_credentials_ = grpc::SslCredentials(of_client);
  }

  std::string key_ = "-", certificate_ = "-", roots_ = "-";
  std::shared_ptr<grpc::ServerCredentials> server_credentials_ =
      grpc::InsecureServerCredentials();
  std::shared_ptr<grpc::ChannelCredentials> client_credentials_ =
      grpc::InsecureChannelCredentials();
};

TEST_P(OldPeerTest, CallsOurServer) {
  EchoServer server(kPenstock, server_credentials_);
  const auto client =
      OldPeer({"client", absl::StrCat(server.port()), "1", roots_});
  ASSERT_NE(client, nullptr);
  const bool is_done = client->Find("done").has_value();
  // The client, which keeps its channel, is the server's only one.
  const std::vector<PathReport> paths = DescribePaths(*server.server());
  EXPECT_EQ(client->Finish(), 0) << client->ReadAll();
  ASSERT_TRUE(is_done);
  ASSERT_EQ(paths.size(), 1u);
  EXPECT_EQ(paths[0].path, "http2") << paths[0];
}

TEST_P(OldPeerTest, ServesOurClient) {
  const auto server = OldPeer({"server", key_, certificate_});
  ASSERT_NE(server, nullptr);
  const auto port = server->Find("port ");
  ASSERT_TRUE(port.has_value());
  const auto channel = NewChannel(absl::StrCat("ipv4:127.0.0.1:", *port),
                                  kPenstock, client_credentials_);
  std::mt19937 random(1);
  for (int call = 0; call < 30; ++call) {
    std::string message(random() & ((1u << (random() % 24)) - 1), '\0');
    for (char& byte : message) byte = static_cast<char>(random());
    const grpc::Status status = Echo(channel, message);
    ASSERT_TRUE(status.ok()) << call << ": " << status.error_message();
  }
  EXPECT_EQ(PathTo(channel, absl::StrCat("ipv4:127.0.0.1:", *port)), "http2");
  EXPECT_EQ(server->Finish(), 0);
}

INSTANTIATE_TEST_SUITE_P(Tls, OldPeerTest, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "On" : "Off";
                         });

}  // namespace
}  // namespace event_engine
}  // namespace penstock
