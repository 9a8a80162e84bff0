// Servers that are not up yet when somebody waits for them.

#include "ps/reach.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "penstock/penstock.h"
#include "ps/optimizer.h"
#include "ps/server.h"
#include "ps/service.h"

namespace penstock::ps {
namespace {

// A port at which nobody answers yet.
class Port {
 public:
  Port() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    // The server takes the port while refused connections still end there.
    const int on = 1;
    setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 1), 0);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  ~Port() { Close(); }
  const std::string& address() const { return address_; }
  // Closes the next connection that somebody makes.
  void RefuseOne() {
    const int connection = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    EXPECT_GE(connection, 0);
    close(connection);
  }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
  std::string address_;
};

// The worker, a process of its own, in which nothing but AwaitServers() uses
// gRPC. Ends with 0 if the server is reached.
pid_t StartWorker(Port* port) {
  const pid_t worker = fork();
  if (worker != 0) return worker;
  port->Close();
  const absl::Status reached = AwaitServers(
      {grpc::CreateChannel(port->address(),
                           Credentials(grpc::InsecureChannelCredentials()))},
      absl::Seconds(10));
  if (!reached.ok()) std::cerr << reached << std::endl;
  _exit(reached.ok() ? 0 : 1);
}

// The connection is then made between two calls: the first was refused.
TEST(ReachTest, AServerThatComesLaterIsReached) {
  Port port;
  const pid_t worker = StartWorker(&port);  // before this process uses gRPC
  port.RefuseOne();
  port.Close();
  Server core(Server::Options(), *MakeSgd(1));
  const std::unique_ptr<grpc::Service> service = MakeService(&core);
  grpc::ServerBuilder builder;
  Enable(&builder);
  builder.AddListeningPort(port.address(), grpc::InsecureServerCredentials());
  builder.RegisterService(service.get());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  int result = -1;
  ASSERT_EQ(waitpid(worker, &result, 0), worker);
  EXPECT_EQ(result, 0);
  core.Drain();
  server->Shutdown(std::chrono::system_clock::now());
}

TEST(ReachTest, AServerThatNeverComesIsNamed) {
  Port port;
  port.Close();
  const absl::Status reached = AwaitServers(
      {grpc::CreateChannel(port.address(), grpc::InsecureChannelCredentials())},
      absl::Seconds(1));
  EXPECT_EQ(reached.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(reached.message().find("server 0: it was not reached in time"),
            std::string::npos)
      << reached;
}

}  // namespace
}  // namespace penstock::ps
