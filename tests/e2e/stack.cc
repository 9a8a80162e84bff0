#include "tests/e2e/stack.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/adapter.h"
#include "tests/vm/windows.h"

// Tells LeakSanitizer to ignore c-ares, gRPC's name resolver, which leaks some
// bytes at the end of a process.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libcares"; }

namespace penstock::e2e {
namespace {

// The time in which a connection moves to its path.
constexpr std::chrono::seconds kTimeToMove(10);

// Binds the server's port with an additional socket, so that no other process
// gets the port between two servers. Meanwhile, callers are refused.
int Reserve(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(
      bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0)
      << port;
  return fd;
}

}  // namespace

Stack::Stack(Path path)
    : path_(path),
      server_credentials_(grpc::InsecureServerCredentials()),
      channel_credentials_(grpc::InsecureChannelCredentials()) {
  // Starts gRPC, and never shuts it down. After a large write, gRPC 1.51 keeps
  // a thread in a poll of up to ten seconds (tcp_posix.cc), and shutting down
  // gRPC after each test would wait for this thread.
  grpc_init();
}

Stack::~Stack() {
  channel_.reset();
  StopServing(std::chrono::milliseconds(0));
  if (reservation_ >= 0) close(reservation_);
}

void Stack::Secure(std::shared_ptr<grpc::ServerCredentials> server,
                   std::shared_ptr<grpc::ChannelCredentials> channel) {
  server_credentials_ = std::move(server);
  channel_credentials_ = std::move(channel);
}

void Stack::Serve(grpc::Service* service, const Configure& configure) {
  grpc::ServerBuilder builder;
  EnableFor(path_, &builder);
  builder.AddListeningPort(address(), server_credentials_, &port_);
  if (service != nullptr) builder.RegisterService(service);
  if (configure) configure(&builder);
  server_ = builder.BuildAndStart();
  ASSERT_NE(server_, nullptr);
  if (reservation_ < 0) reservation_ = Reserve(port_);
}

void Stack::StopServing(std::chrono::milliseconds grace) {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now() + grace);
  server_->Wait();
  server_.reset();
}

std::shared_ptr<grpc::Channel> Stack::NewChannel(
    grpc::ChannelArguments arguments) const {
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(
      address(), CredentialsFor(path_, channel_credentials_), arguments);
}

std::shared_ptr<grpc::Channel> Stack::channel() {
  if (channel_ == nullptr) channel_ = NewChannel();
  return channel_;
}

void Stack::ExpectTraffic(grpc::Channel& channel, uint64_t sent,
                          uint64_t received) const {
  ExpectPath(channel);
  if (!IsPenstock(path_)) return;
  for (const PathReport& report : DescribePaths(channel)) {
    EXPECT_EQ(report.messages_sent, sent) << report;
    EXPECT_EQ(report.messages_received, received) << report;
  }
}

void Stack::ExpectPath(grpc::Channel& channel) const {
  if (kIsEventEngine) return ExpectPathSoon(channel);
  const std::vector<PathReport> reports = DescribePaths(channel);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].path, FabricOf(path_)) << reports[0];
  if (path_ != Path::kVerbs) return;
  EXPECT_TRUE(UsesWindowsAsWanted(reports[0].detail)) << reports[0];
}

void Stack::ExpectPathSoon(grpc::Channel& channel) const {
  if (path_ == Path::kStockClient || path_ == Path::kStock) return;
  const auto end = std::chrono::system_clock::now() + kTimeToMove;
  while (!UsesPath(DescribePaths(channel))) {
    if (std::chrono::system_clock::now() > end) {
      ADD_FAILURE() << testing::PrintToString(DescribePaths(channel));
      return;
    }
    std::this_thread::yield();
  }
}

bool Stack::UsesPath(const std::vector<PathReport>& reports) const {
  size_t count = 0;
  for (const PathReport& report : reports) {
    // Ignores the address if the server is another process.
    if (port_ != 0 && !absl::EndsWith(report.peer, address())) continue;
    if (report.path != FabricOf(path_)) return false;
    ++count;
  }
  return count > 0;
}

std::string Stack::address() const { return absl::StrCat("127.0.0.1:", port_); }

}  // namespace penstock::e2e
