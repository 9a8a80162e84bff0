#include "grpcpp/server.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/ps/training/roles.h"
#include "bench/rpc/setup/child_process.h"
#include "bench/rpc/setup/transports.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "penstock/penstock.h"
#include "ps/server/server.h"
#include "ps/service/service.h"
#include "tensor_service/pool_allocator.h"
#include "tensor_service/status.h"

namespace penstock::bench {

// Runs a server like ps_server.
void RunServer(Transport transport) {
  BecomeChild();
  ps::Server::Options options;
  options.membership.expected_workers = 1;
  options.log = [](const std::string&) {};
  grpc::ServerBuilder builder;
  if (const auto penstock = PenstockOptions(transport, Side::kServer, "")) {
    tensor::SetDefaultAllocator(tensor::PoolAllocator<Allocator>());
    Enable(&builder, *penstock);
  }
  ps::Server core(options);
  const std::unique_ptr<grpc::Service> service = ps::MakeService(&core);
  tensor::AllowUnlimitedMessages(&builder);
  const std::string address = ListenAddress(transport, "127.0.0.1");
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(service.get());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    SendLine(absl::StrCat(kErrorPrefix, "cannot serve over ", Name(transport)));
    LeaveChild(1);
  }
  SendLine(ConnectAddress(address, port));
  AwaitParent();
  core.Drain();
  server->Shutdown(absl::ToChronoTime(absl::Now()));
  LeaveChild(0);
}

}  // namespace penstock::bench
