// victim ROLE ...: the attacked process, with real gRPC over Penstock.
//
//   victim server MAX_STREAMS MAX_RECEIVE
//       serves service.h; prints "port N". -1: no limit
//   victim client HONEST HOSTILE KIND CALLS
//       calls the server at port HONEST like a bystander. Makes CALLS
//       simultaneous calls to port HOSTILE, on repeatedly new channels; KIND is
//       defined in calls.h. For each line of input, waits for the bystander's
//       next calls, and prints "path PATH" for each connection to HOSTILE,
//       "ended CODE SECONDS MESSAGE" for each call to HOSTILE that has ended
//       since, and then "checked CALLS CONNECTIONS FAILURE"
//
// All connections use TLS if the environment has the identity (security.h).
//
// The process ends when its input ends, or with the process that started it.

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "penstock/penstock.h"
#include "tests/adversary/caller.h"
#include "tests/adversary/calls.h"
#include "tests/adversary/security.h"
#include "tests/adversary/service.h"

namespace penstock::adversary {
namespace {

int Serve(int max_streams, int max_receive) {
  Service service;
  grpc::ServerBuilder builder;
  Enable(&builder);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", ServerCredentials(FromEnvironment()),
                           &port);
  builder.RegisterCallbackGenericService(&service);
  if (max_streams >= 0) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, max_streams);
  }
  builder.SetMaxReceiveMessageSize(max_receive);
  auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::cout << "port " << port << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
  }
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}

int CallOn(int honest, int hostile, Kind kind, int calls) {
  const Identity identity = FromEnvironment();
  Bystander bystander(honest, /*has_tcp=*/true, identity);
  Quarry quarry(hostile, kind, calls, identity);
  for (std::string line; std::getline(std::cin, line);) {
    bystander.AwaitCalls();
    for (const PathReport& report : quarry.Describe()) {
      std::cout << "path " << report << std::endl;
    }
    for (const Outcome& outcome : quarry.TakeOutcomes()) {
      std::cout << "ended " << outcome.code << " " << outcome.seconds << " "
                << absl::CHexEscape(outcome.message) << std::endl;
    }
    std::cout << "checked " << bystander.calls() << " "
              << bystander.connections() << " " << bystander.failure()
              << std::endl;
  }
  return 0;
}

int Main(int argc, char** argv) {
  const std::string role = argc > 1 ? argv[1] : "";
  if (role == "server" && argc == 4) {
    return Serve(std::atoi(argv[2]), std::atoi(argv[3]));
  }
  if (role == "client" && argc == 6) {
    return CallOn(std::atoi(argv[2]), std::atoi(argv[3]), KindOf(argv[4]),
                  std::atoi(argv[5]));
  }
  return 2;
}

}  // namespace
}  // namespace penstock::adversary

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int code = penstock::adversary::Main(argc, argv);
  // Skips gRPC's shutdown, which may wait ten seconds for calls.
  _exit(code);
}
