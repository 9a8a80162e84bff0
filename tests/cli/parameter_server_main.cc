// A parameter server with a model, whose figures are those of the arguments:
// for the tests of `penstock ps` and `penstock top`.
//
// Usage: parameter_server RUN TABLES. RUN 0: it has no model. Two workers are
// members; rank 0 is three steps ahead of rank 1. Prints "PORT METRICS_PORT",
// and ends with its standard input.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "penstock/metrics.h"
#include "penstock/penstock.h"
#include "ps/service/metrics.h"
#include "ps/service/service.h"
#include "tests/ps/server/small_server.h"

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
  // A name that a terminal would obey, and that Prometheus' format escapes.
  model.tables.push_back(SparseTable("us\x1b[31m\"ers", 4, kStaleness));
  for (int i = 2; i < tables; ++i) {
    model.tables.push_back(
        SparseTable(absl::StrCat("table", i), 1, kStaleness));
  }
  return model;
}

void Train(Server* server, uint64_t run, int tables) {
  Server::Definition definition = SmallServer::Definition(SomeModel(tables));
  definition.run = run;
  Check(server->Define(definition).status(), "define");
  const View view = {run, 1};
  const WorkerId fast = {0, 1};
  const WorkerId slow = {1, 2};
  for (const WorkerId& worker : {fast, slow}) {
    Check(server->Join(view, worker).status(), "join");
  }
  const tensor::Bundle values = {
      {Floats("kernel", {2, 3}, {1, 2, 3, 4, 5, 6})}};
  Check(server->Initialize(view, fast, values).status(), "initialize");
  const auto push = [&](const WorkerId& worker, uint64_t clock) {
    Answer<Server::PushVerdict> answer;
    server->Push(view, worker, clock,
                 {{Floats("kernel", {2, 3}, {0, 0, 0, 0, 0, 0})}},
                 answer.callback());
    Check(answer.Wait().status(), "push");
  };
  for (uint64_t clock = 0; clock < 3; ++clock) push(fast, clock);
}

int Run(uint64_t run, int tables) {
  Server::Options options;
  options.membership.expected_workers = 2;
  options.membership.lease = absl::Hours(1);
  options.log = [](const std::string&) {};
  Server core(options);
  if (run != 0) Train(&core, run, tables);
  const std::unique_ptr<grpc::Service> service = MakeService(&core);
  grpc::ServerBuilder builder;
  penstock::Enable(&builder);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(service.get());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const auto metrics = AddMetrics([&core] { return MetricsOf(core.report()); });
  const auto metrics_port = ServeMetrics("0");
  Check(metrics_port.status(), "metrics");
  printf("%d %d\n", port, *metrics_port);
  fflush(stdout);
  while (getchar() != EOF) {
  }
  core.Drain();
  server->Shutdown();
  return 0;
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  uint64_t run = 0;
  int tables = 0;
  if (argc != 3 || !absl::SimpleAtoi(argv[1], &run) ||
      !absl::SimpleAtoi(argv[2], &tables)) {
    fprintf(stderr, "usage: parameter_server RUN TABLES\n");
    return 2;
  }
  return penstock::ps::Run(run, tables);
}
