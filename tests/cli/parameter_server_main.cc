// A parameter server with a model and figures from the arguments, for the tests
// of `penstock ps` and `penstock top`.
//
// Usage: parameter_server RUN TABLES [FLAG...]. --server=I --servers=N select
// one of several servers, and flags of ps_server may follow. With RUN 0, the
// server has no model. Two workers are members; rank 0 is three steps ahead of
// rank 1. Prints "PORT METRICS_PORT", and ends with its standard input. With
// --hold, writing a checkpoint waits for a line of input.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "penstock/metrics.h"
#include "penstock/penstock.h"
#include "ps/access/access.h"
#include "ps/access/policy.h"
#include "ps/checkpoint/posix_files.h"
#include "ps/server/checkpoint_writer.h"
#include "ps/service/metrics.h"
#include "ps/service/service.h"
#include "ps/tls.h"
#include "tests/ps/server/small_server.h"
#include "tests/ps/service/held_files.h"

namespace penstock::ps {
namespace {

constexpr int64_t kStaleness = 10;

void Check(const absl::Status& status, const char* what) {
  if (status.ok()) return;
  fprintf(stderr, "%s: %s\n", what, status.ToString().c_str());
  exit(1);
}

Model SomeModel(int tables) {
  Model model;
  model.tables.push_back(DenseTable("kernel", {2, 3}, kStaleness));
  // Adds a table whose name would control a terminal. Prometheus' format
  // escapes the name.
  model.tables.push_back(SparseTable("us\x1b[31m\"ers", 4, kStaleness));
  for (int i = 2; i < tables; ++i) {
    model.tables.push_back(
        SparseTable(absl::StrCat("table", i), 1, kStaleness));
  }
  return model;
}

struct Flags {
  uint64_t run = 0;
  int tables = 0;
  uint32_t server = 0;
  uint32_t servers = 1;
  std::string checkpoints;
  bool hold = false;
  TlsFiles tls;
  AccessFiles access;
};

Flags Parse(int argc, char** argv) {
  Flags flags;
  CLI::App app;
  app.add_option("run", flags.run)->required();
  app.add_option("tables", flags.tables)->required();
  app.add_option("--server", flags.server);
  app.add_option("--servers", flags.servers);
  app.add_option("--checkpoints", flags.checkpoints);
  app.add_flag("--hold", flags.hold);
  app.add_option("--ca", flags.tls.ca);
  app.add_option("--cert", flags.tls.cert);
  app.add_option("--key", flags.tls.key);
  app.add_option("--access", flags.access.rules);
  app.add_option("--secret", flags.access.secret);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit(app.exit(error));
  }
  return flags;
}

void Train(Server* server, const Flags& flags) {
  Server::Definition definition =
      SmallServer::Definition(SomeModel(flags.tables));
  definition.run = flags.run;
  definition.server = flags.server;
  while (definition.servers.size() < flags.servers) {
    definition.servers.push_back(
        absl::StrCat("ps", definition.servers.size(), ":2222"));
  }
  Check(server->Define(definition).status(), "define");
  const View view = {flags.run, 1};
  const WorkerId fast = {0, 1};
  const WorkerId slow = {1, 2};
  for (const WorkerId& worker : {fast, slow}) {
    Check(server->Join(view, worker).status(), "join");
  }
  // Gives the only dense table, which is small, to the first server.
  const bool is_first = flags.server == 0;
  Check(server
            ->Initialize(view, fast,
                         is_first ? tensor::Bundle{{Floats("kernel", {2, 3},
                                                           {1, 2, 3, 4, 5, 6})}}
                                  : tensor::Bundle())
            .status(),
        "initialize");
  for (uint64_t clock = 0; clock < 3; ++clock) {
    Answer<Server::PushVerdict> answer;
    server->Push(
        view, fast, clock,
        is_first
            ? tensor::Bundle{{Floats("kernel", {2, 3}, {0, 0, 0, 0, 0, 0})}}
            : tensor::Bundle(),
        answer.callback());
    Check(answer.Wait().status(), "push");
  }
}

template <typename T>
T Required(absl::StatusOr<T> made, const char* what) {
  Check(made.status(), what);
  return *std::move(made);
}

int Run(const Flags& flags) {
  Server::Options options;
  options.membership.expected_workers = 2;
  options.membership.lease = absl::Hours(1);
  options.log = [](const std::string&) {};
  Server core(options);
  if (flags.run != 0) Train(&core, flags);
  Access access(
      Required(ReadAccessPolicy(flags.access, flags.tls.given()), "access"),
      flags.tls.given());
  std::unique_ptr<checkpoint::Files> files;
  std::unique_ptr<HeldFiles> held;
  std::unique_ptr<CheckpointWriter> writer;
  if (!flags.checkpoints.empty()) {
    files = Required(checkpoint::OpenFolder(flags.checkpoints), "folder");
    if (flags.hold) held = std::make_unique<HeldFiles>(files.get());
    checkpoint::Files* used = files.get();
    if (held != nullptr) used = held.get();
    writer = std::make_unique<CheckpointWriter>(used, &core,
                                                CheckpointWriter::Options());
  }
  const std::unique_ptr<grpc::Service> service =
      MakeService(&core, {&access, writer.get()});
  grpc::ServerBuilder builder;
  penstock::Enable(&builder);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0",
                           Required(ServerSecurity(flags.tls), "TLS"), &port);
  builder.RegisterService(service.get());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const auto metrics = AddMetrics([&core, checkpoints = writer.get()] {
    return MetricsOf(ReportOf(core, checkpoints));
  });
  const int metrics_port = Required(ServeMetrics("0"), "metrics");
  printf("%d %d\n", port, metrics_port);
  fflush(stdout);
  for (int byte = getchar(); byte != EOF; byte = getchar()) {
    if (held != nullptr && byte == '\n') held->Release();
  }
  core.Drain();
  server->Shutdown();
  return 0;
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  penstock::ps::KeepTlsAtExit();
  return penstock::ps::Run(penstock::ps::Parse(argc, argv));
}
