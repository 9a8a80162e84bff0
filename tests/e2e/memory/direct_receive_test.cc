// Tests connections over tcp. With its first large message, or when it is busy,
// a connection gets a second descriptor of its socket, except with TLS, where
// the socket's bytes are not the session's bytes.

#include <dirent.h>
#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "gtest/gtest.h"
#include "tests/e2e/call.h"
#include "tests/e2e/certificates.h"
#include "tests/e2e/raw.h"
#include "tests/e2e/stack.h"

namespace penstock::e2e {
namespace {

constexpr size_t kLarge = 1024 * 1024;

// Returns the number of sockets of which this process has two descriptors.
int DoubledSockets() {
  std::map<ino_t, int> descriptors;
  DIR* const folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder)) {
    struct stat about;
    const int fd = std::atoi(entry->d_name);
    if (fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode)) {
      ++descriptors[about.st_ino];
    }
  }
  closedir(folder);
  int doubled = 0;
  for (const auto& socket : descriptors) doubled += socket.second == 2 ? 1 : 0;
  return doubled;
}

class DirectReceiveTest : public testing::Test {
 protected:
  ~DirectReceiveTest() override { End(); }

  void Serve() {
    stack_->Serve(nullptr, [this](grpc::ServerBuilder* builder) {
      builder->RegisterCallbackGenericService(&service_);
      builder->SetMaxReceiveMessageSize(-1);
    });
  }
  void End() {
    if (stack_ == nullptr) return;
    stack_->StopServing(std::chrono::milliseconds(0));
    stack_ = nullptr;
  }
  // Sends a message to the server and back.
  void Echo(size_t size) {
    Call call;
    RawStream stream(stack_->channel(), &call);
    ASSERT_TRUE(stream.Write(Pattern(size)));
    EXPECT_TRUE(stream.WritesDone());
    EXPECT_TRUE(stream.Read() == Pattern(size));
    EXPECT_EQ(stream.Read(), absl::nullopt);
    EXPECT_TRUE(stream.Finish().ok());
  }

  RawEchoService service_;
  std::unique_ptr<Stack> stack_ = std::make_unique<Stack>(Path::kTcp);
};

TEST_F(DirectReceiveTest, BeginsWithTheFirstLargeMessageAndEndsWithTheChannel) {
  Serve();
  Echo(1000);
  EXPECT_EQ(DoubledSockets(), 0);
  Echo(kLarge);
  EXPECT_EQ(DoubledSockets(), 2) << "the client's socket and the server's";
  Echo(1000);
  Echo(3 * kLarge);
  EXPECT_EQ(DoubledSockets(), 2);
  End();
  // Waits, because gRPC releases connections on its own threads.
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (DoubledSockets() > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_EQ(DoubledSockets(), 0);
}

TEST_F(DirectReceiveTest, BeginsAlsoWithManySmallMessages) {
  Serve();
  for (int i = 0; i < 20; ++i) Echo(8);
  EXPECT_EQ(DoubledSockets(), 2);
}

TEST_F(DirectReceiveTest, NotWithTls) {
  ASSERT_TRUE(TestCertificates().has_value()) << "no openssl command?";
  grpc::SslServerCredentialsOptions server(
      GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  server.pem_key_cert_pairs.push_back(
      {TestCertificates()->server.key, TestCertificates()->server.certificate});
  grpc::SslCredentialsOptions client;
  client.pem_root_certs = TestCertificates()->authority.certificate;
  stack_->Secure(grpc::SslServerCredentials(server),
                 grpc::SslCredentials(client));
  Serve();
  Echo(kLarge);
  for (int i = 0; i < 20; ++i) Echo(8);
  EXPECT_EQ(DoubledSockets(), 0);
}

}  // namespace
}  // namespace penstock::e2e
