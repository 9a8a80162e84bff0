// peer server ADDRESS                          echoes; prints "port N"
// peer client ADDRESS CHANNELS BYTES MESSAGES  as many on each channel
//
// The other process of verbs tests, configured by PENSTOCK_*. The client prints
// "status CODE MESSAGE" for each channel, and "path PATH" for each connection.
// The server ends with its input, or with the process that started it.

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "penstock/penstock.h"
#include "tests/e2e/verbs/echo.h"

namespace penstock::e2e {
namespace {

int Serve(const std::string& address) {
  EchoService service;
  grpc::ServerBuilder builder;
  Enable(&builder);
  builder.SetMaxReceiveMessageSize(-1);
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::cout << "port " << port << std::endl;
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}

grpc::Status EchoMany(grpc::Channel* channel, TestService::Stub* stub,
                      size_t bytes, int messages) {
  grpc::Status status;
  for (int i = 0; status.ok() && i < messages; ++i) {
    status = Echo(stub, i, bytes, 120);
  }
  return status;
}

int Call(const std::string& address, int channels, size_t bytes, int messages) {
  struct Client {
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<TestService::Stub> stub;
    std::future<grpc::Status> status;
  };
  std::vector<Client> clients(channels);
  for (Client& client : clients) {
    client.channel = grpc::CreateCustomChannel(
        address, Credentials(grpc::InsecureChannelCredentials()),
        OwnConnection());
    client.stub = TestService::NewStub(client.channel);
    client.status = std::async(std::launch::async, [&client, bytes, messages] {
      return EchoMany(client.channel.get(), client.stub.get(), bytes, messages);
    });
  }
  for (Client& client : clients) {
    const grpc::Status status = client.status.get();
    std::cout << "status " << status.error_code() << " "
              << status.error_message() << std::endl;
    for (const PathReport& report : DescribePaths(*client.channel)) {
      std::cout << "path " << report << std::endl;
    }
  }
  return 0;
}

int Main(const std::vector<std::string>& words) {
  if (words.size() == 2 && words[0] == "server") return Serve(words[1]);
  if (words.size() != 5 || words[0] != "client") return 2;
  return Call(words[1], std::atoi(words[2].c_str()),
              std::strtoul(words[3].c_str(), nullptr, 10),
              std::atoi(words[4].c_str()));
}

}  // namespace
}  // namespace penstock::e2e

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int code =
      penstock::e2e::Main(std::vector<std::string>(argv + 1, argv + argc));
  // Skips gRPC's shutdown, which may wait ten seconds; see stack.cc.
  _exit(code);
}
