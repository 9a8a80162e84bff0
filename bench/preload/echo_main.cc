// echo server: prints its port, and serves until its input ends.
//
// echo client ADDRESS SIZE CALLS: makes one call at a time, and prints the
// microseconds of each call on one line.
//
// Built twice: as a stock program, and with Penstock linked (PENSTOCK_LINKED).

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "bench/preload/echo.grpc.pb.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#ifdef PENSTOCK_LINKED
#include "penstock/penstock.h"
#endif

namespace penstock::bench::preload {
namespace {

class Service : public Echo::Service {
  grpc::Status Call(grpc::ServerContext*, const Payload* request,
                    Payload* response) override {
    response->set_data(request->data());
    return grpc::Status::OK;
  }
};

int Serve() {
  Service service;
  grpc::ServerBuilder builder;
#ifdef PENSTOCK_LINKED
  Enable(&builder);
#endif
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::cout << "port " << port << std::endl;
  while (std::cin.get() != EOF) {
  }
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}

int Measure(const std::string& address, int size, int calls) {
  auto credentials = grpc::InsecureChannelCredentials();
#ifdef PENSTOCK_LINKED
  credentials = Credentials(credentials);
#endif
  const auto stub = Echo::NewStub(grpc::CreateChannel(address, credentials));
  const int warm_up = calls / 10 + 1;
  std::vector<double> times;
  for (int i = 0; i < warm_up + calls; ++i) {
    Payload request, response;
    request.set_data(std::string(size, 'x'));
    grpc::ClientContext context;
    const auto begin = std::chrono::steady_clock::now();
    const grpc::Status status = stub->Call(&context, request, &response);
    const std::chrono::duration<double, std::micro> time =
        std::chrono::steady_clock::now() - begin;
    if (!status.ok() || response.data() != request.data()) {
      std::cerr << status.error_message() << std::endl;
      return 1;
    }
    if (i >= warm_up) times.push_back(time.count());
  }
  for (double time : times) std::cout << time << " ";
  std::cout << std::endl;
  return 0;
}

}  // namespace
}  // namespace penstock::bench::preload

int main(int argc, char** argv) {
  const std::string role = argc > 1 ? argv[1] : "";
  if (role == "server") return penstock::bench::preload::Serve();
  if (role != "client" || argc != 5) return 2;
  return penstock::bench::preload::Measure(argv[2], std::atoi(argv[3]),
                                           std::atoi(argv[4]));
}
