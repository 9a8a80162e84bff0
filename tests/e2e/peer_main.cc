// peer ROLE PATH [ADDRESS]: the other process of a test.
//
//   peer server PATH           serves; prints "port N"
//   peer stream PATH ADDRESS   opens a call; prints "under way", and at the end
//                              "status CODE MESSAGE"
//   peer call PATH ADDRESS     makes one call; prints "status CODE MESSAGE"
//
// Clients also print "path PATH" for each connection before they end. PATH is a
// name of path.h, or "Environment", which uses PENSTOCK_*. The process ends
// with its input, or with the process that started it.

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>

#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "penstock/penstock.h"
#include "tests/e2e/call.h"
#include "tests/e2e/path.h"
#include "tests/e2e/test_service.h"

namespace penstock::e2e {
namespace {

constexpr size_t kPayload = 2 << 20;

void AwaitEndOfInput() {
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

int Serve(absl::optional<Path> path) {
  TestServiceImpl service;
  grpc::ServerBuilder builder;
  if (path.has_value()) {
    EnableFor(*path, &builder);
  } else {
    Enable(&builder);
  }
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&service);
  auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::cout << "port " << port << std::endl;
  AwaitEndOfInput();
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}

std::shared_ptr<grpc::Channel> Connect(absl::optional<Path> path,
                                       const std::string& address) {
  auto insecure = grpc::InsecureChannelCredentials();
  return grpc::CreateChannel(address, path.has_value()
                                          ? CredentialsFor(*path, insecure)
                                          : Credentials(insecure));
}

grpc::Status OpenCall(TestService::Stub* stub) {
  Call call;
  auto stream = stub->FullDuplexCall(&call);
  if (PingPong(stream.get()) && PingPong(stream.get(), kPayload)) {
    std::cout << "under way" << std::endl;
    AwaitEndOfInput();
  }
  stream->WritesDone();
  return stream->Finish();
}

void Report(const grpc::Status& status, grpc::Channel* channel) {
  std::cout << "status " << status.error_code() << " " << status.error_message()
            << std::endl;
  for (const PathReport& report : DescribePaths(*channel)) {
    std::cout << "path " << report << std::endl;
  }
}

int Main(const std::string& role, absl::optional<Path> path,
         const std::string& address) {
  if (role == "server") return Serve(path);
  auto channel = Connect(path, address);
  auto stub = TestService::NewStub(channel);
  Report(role == "stream" ? OpenCall(stub.get()) : MakeEmptyCall(stub.get()),
         channel.get());
  return 0;
}

}  // namespace
}  // namespace penstock::e2e

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int code = penstock::e2e::Main(
      argv[1], penstock::e2e::PathOfName(argv[2]), argc > 3 ? argv[3] : "");
  // Skips gRPC's shutdown, which may wait ten seconds; see stack_test.cc.
  _exit(code);
}
