// Tests certificates that are replaced while both sides run. Existing
// connections stay; new ones use the new certificates.

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "gtest/gtest.h"
#include "tests/e2e/certificates.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

namespace tls = grpc::experimental;

// One side's key and certificate in files, with a watcher.
class WatchedIdentity {
 public:
  // Creates the files within `folder`, which must exist.
  WatchedIdentity(std::filesystem::path folder, const Identity& identity)
      : folder_(std::move(folder)) {
    Write("authority.pem", TestCertificates()->authority.certificate);
    Replace(identity);
  }

  // Replaces both files atomically, as the watcher requires, by changing a link
  // to a folder.
  void Replace(const Identity& identity) {
    const std::string next = "identity" + std::to_string(++generation_);
    std::filesystem::create_directory(folder_ / next);
    Write(next + "/key.pem", identity.key);
    Write(next + "/certificate.pem", identity.certificate);
    std::filesystem::create_directory_symlink(next, folder_ / "link");
    std::filesystem::rename(folder_ / "link", folder_ / "current");
  }

  // Checks once a second, the shortest interval that gRPC allows.
  std::shared_ptr<tls::CertificateProviderInterface> NewProvider() const {
    return std::make_shared<tls::FileWatcherCertificateProvider>(
        folder_ / "current/key.pem", folder_ / "current/certificate.pem",
        folder_ / "authority.pem", 1);
  }

 private:
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }

  const std::filesystem::path folder_;
  int generation_ = 0;
};

// Returns the client's name in each call's metadata.
class Namer final : public TestService::Service {
 public:
  grpc::Status EmptyCall(grpc::ServerContext* context, const Empty*,
                         Empty*) override {
    for (const auto& name :
         context->auth_context()->FindPropertyValues("x509_common_name")) {
      context->AddTrailingMetadata("x-client",
                                   std::string(name.data(), name.size()));
    }
    return grpc::Status::OK;
  }
};

class CertificateReloadTest : public StackTest {
 protected:
  // Stops the server before its service is destroyed.
  ~CertificateReloadTest() override {
    StopServing(std::chrono::milliseconds(0));
  }

  void SetUp() override {
    ASSERT_TRUE(TestCertificates().has_value()) << "no openssl command?";
    const char* parent = std::getenv("TEST_TMPDIR");
    // Makes a folder that is never removed, because the watchers live longer
    // than the test.
    folder_ = std::filesystem::path(parent == nullptr ? "/tmp" : parent) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    for (const char* side : {"server", "client"}) {
      std::filesystem::create_directories(folder_ / side);
    }
    of_server_ = std::make_unique<WatchedIdentity>(folder_ / "server",
                                                   TestCertificates()->server);
    of_client_ = std::make_unique<WatchedIdentity>(folder_ / "client",
                                                   TestCertificates()->client);
    Secure(ServerCredentials(), ChannelCredentials());
    Serve(&service_);
  }

  std::shared_ptr<grpc::ServerCredentials> ServerCredentials() const {
    tls::TlsServerCredentialsOptions options(of_server_->NewProvider());
    options.watch_root_certs();
    options.watch_identity_key_cert_pairs();
    options.set_cert_request_type(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    return tls::TlsServerCredentials(options);
  }
  std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials() const {
    tls::TlsChannelCredentialsOptions options;
    options.set_certificate_provider(of_client_->NewProvider());
    options.watch_root_certs();
    options.watch_identity_key_cert_pairs();
    return tls::TlsCredentials(options);
  }

  // Returns a channel with its own connection, to the server named `server`.
  std::shared_ptr<grpc::Channel> ChannelTo(const std::string& server) const {
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride(server);
    return NewChannel(arguments);
  }

  // Makes a call. Returns the name by which the server knows this client, or ""
  // on failure.
  static std::string NameBy(const std::shared_ptr<grpc::Channel>& channel) {
    Call call;
    Empty response;
    TestService::NewStub(channel)->EmptyCall(&call, Empty(), &response);
    const auto& trailers = call.GetServerTrailingMetadata();
    auto name = trailers.find("x-client");
    if (name == trailers.end()) return "";
    return std::string(name->second.data(), name->second.size());
  }

  // Expects that new connections soon see the server's certificate `server`,
  // and that the server then knows the client as `client`.
  void ExpectSoon(const std::string& server, const std::string& client) {
    const auto end = In(kPatience);
    while (std::chrono::system_clock::now() < end) {
      auto channel = ChannelTo(server);
      if (NameBy(channel) != client) continue;
      ExpectTraffic(*channel, 1, 1);
      return;
    }
    ADD_FAILURE() << "not known as " << client << " to " << server;
  }

  std::filesystem::path folder_;
  std::unique_ptr<WatchedIdentity> of_server_;
  std::unique_ptr<WatchedIdentity> of_client_;
  Namer service_;
};

TEST_P(CertificateReloadTest, NewConnectionsUseTheNewCertificates) {
  ExpectSoon("penstock.test", "client.test");
  auto old = ChannelTo("penstock.test");
  ASSERT_EQ(NameBy(old), "client.test");
  // Swaps the certificates: the server gets the client's, and the client gets
  // the server's.
  of_server_->Replace(TestCertificates()->client);
  of_client_->Replace(TestCertificates()->server);
  ExpectSoon("client.test", "penstock.test");
  EXPECT_EQ(NameBy(ChannelTo("penstock.test")), "");
  // Expects that the existing connection still has its original certificates.
  EXPECT_EQ(NameBy(old), "client.test");
  ExpectTraffic(*old, 2, 2);
}

TEST_P(CertificateReloadTest, CertificateThatNobodyTrustsIsRefusedFromThenOn) {
  ExpectSoon("penstock.test", "client.test");
  of_client_->Replace(TestCertificates()->impostor);
  const auto end = In(kPatience);
  while (NameBy(ChannelTo("penstock.test")) == "client.test") {
    ASSERT_LT(std::chrono::system_clock::now(), end);
  }
  EXPECT_EQ(NameBy(ChannelTo("penstock.test")), "");
  of_client_->Replace(TestCertificates()->client);
  ExpectSoon("penstock.test", "client.test");
}

// Tests only some paths, because the watchers need seconds.
INSTANTIATE_TEST_SUITE_P(Over, CertificateReloadTest, EachPenstockPath(),
                         PathName());

}  // namespace
}  // namespace penstock::e2e
