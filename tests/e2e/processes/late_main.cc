// late ROLE LIBRARY [ADDRESS]: a program that uses gRPC before it loads
// LIBRARY, which contains Penstock.
//
//   late server LIBRARY          serves; prints "port N"
//   late call LIBRARY ADDRESS    makes calls; prints "status CODE MESSAGE", and
//                                "path PATH" for each connection
//   late early LIBRARY ADDRESS   the same, but loads LIBRARY first

#include <dlfcn.h>
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
#include "tests/e2e/call.h"
#include "tests/e2e/processes/plugin.h"
#include "tests/e2e/test_service.h"

namespace penstock::e2e {
namespace {

const Plugin* Load(const char* library) {
  void* handle = dlopen(library, RTLD_NOW);
  if (handle == nullptr) {
    std::cout << dlerror() << std::endl;
    _exit(3);
  }
  using GetPlugin = const Plugin* (*)();
  return reinterpret_cast<GetPlugin>(dlsym(handle, kGetPlugin))();
}

std::unique_ptr<grpc::Server> Start(const Plugin* plugin,
                                    grpc::Service* service, int* port) {
  grpc::ServerBuilder builder;
  if (plugin != nullptr) plugin->enable(&builder);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           port);
  builder.RegisterService(service);
  return builder.BuildAndStart();
}

int Serve(const char* library) {
  TestServiceImpl service;
  int port = 0;
  auto early = Start(nullptr, &service, &port);
  auto late = Start(Load(library), &service, &port);
  if (early == nullptr || late == nullptr) return 1;
  std::cout << "port " << port << std::endl;
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}

int MakeCalls(const char* library, const std::string& address, bool early) {
  const Plugin* plugin = early ? Load(library) : nullptr;
  auto insecure = grpc::InsecureChannelCredentials();
  auto stock = grpc::CreateChannel(address, insecure);
  auto stub = TestService::NewStub(stock);
  if (!MakeEmptyCall(stub.get()).ok()) return 1;
  if (!early) plugin = Load(library);
  auto channel = grpc::CreateChannel(address, plugin->credentials(insecure));
  auto other = grpc::CreateChannel(address, plugin->credentials(insecure));
  stub = TestService::NewStub(channel);
  grpc::Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) {
    status = MakeEmptyCall(stub.get());
  }
  std::cout << "status " << status.error_code() << " " << status.error_message()
            << std::endl;
  std::cout << "path " << plugin->describe(channel.get()) << std::flush;
  std::cout << "end" << std::endl;
  return 0;
}

int Main(int argc, char** argv) {
  const std::string role = argv[1];
  if (role == "server") return Serve(argv[2]);
  return argc > 3 ? MakeCalls(argv[2], argv[3], role == "early") : 2;
}

}  // namespace
}  // namespace penstock::e2e

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  _exit(penstock::e2e::Main(argc, argv));  // see peer_main.cc
}
