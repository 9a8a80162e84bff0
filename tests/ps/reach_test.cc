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
#include "absl/time/clock.h"
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

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

// The worker, a process of its own, in which nothing but AwaitServers() uses
// gRPC. Ends with 0 if the server is reached.
pid_t StartWorker(const std::string& address) {
  const pid_t worker = fork();
  if (worker != 0) return worker;
  const absl::Status reached = AwaitServers(
      {grpc::CreateChannel(address,
                           Credentials(grpc::InsecureChannelCredentials()))},
      absl::Seconds(10));
  if (!reached.ok()) std::cerr << reached << std::endl;
  _exit(reached.ok() ? 0 : 1);
}

// The connection is then made between two calls: the first was refused.
TEST(ReachTest, AServerThatComesLaterIsReached) {
  const std::string address = absl::StrCat("127.0.0.1:", FreePort());
  const pid_t worker = StartWorker(address);  // before this process uses gRPC
  absl::SleepFor(absl::Milliseconds(300));
  Server core(Server::Options(), *MakeSgd(1));
  const std::unique_ptr<grpc::Service> service = MakeService(&core);
  grpc::ServerBuilder builder;
  Enable(&builder);
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
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
  const std::string address = absl::StrCat("127.0.0.1:", FreePort());
  const absl::Status reached = AwaitServers(
      {grpc::CreateChannel(address, grpc::InsecureChannelCredentials())},
      absl::Seconds(1));
  EXPECT_EQ(reached.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(reached.message().find("server 0: it was not reached in time"),
            std::string::npos)
      << reached;
}

}  // namespace
}  // namespace penstock::ps
