#include "bench/rpc/many_servers.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "bench/rpc/client_role.h"
#include "bench/rpc/measure.h"
#include "bench/rpc/report/statistics.h"
#include "bench/rpc/server/server_role.h"
#include "bench/rpc/setup/child_process.h"
#include "bench/rpc/setup/usage.h"

namespace penstock {
namespace bench {
namespace {

using Results = std::vector<RoundResult>;

// The server and client processes of one round. The destructor ends the clients
// first.
struct Processes {
  std::vector<RemoteServer> servers;
  std::vector<std::unique_ptr<ChildProcess>> clients;
};

absl::StatusOr<Processes> Start(RunOptions options, Transport transport,
                                Api api, int clients) {
  Processes processes;
  for (int i = 0; i < options.servers; ++i) {
    auto server = StartServerProcess(options, transport, api);
    if (!server.ok()) return server.status();
    options.server_addresses.push_back(server->address);
    processes.servers.push_back(*std::move(server));
  }
  for (int i = 0; i < clients; ++i) {
    auto client = ChildProcess::Start(
        ClientFlags(options, Benchmark::kServers, transport, api));
    if (!client.ok()) return client.status();
    processes.clients.push_back(*std::move(client));
  }
  return processes;
}

// Waits for one result of each client, and returns the results.
absl::StatusOr<Results> ReadAll(const Processes& processes, const Cell& cell) {
  Results results;
  for (const auto& client : processes.clients) {
    const absl::StatusOr<RoundResult> result = ReadResult(cell, client.get());
    if (!result.ok()) return result.status();
    results.push_back(*result);
  }
  return results;
}

absl::StatusOr<double> CpuSecondsOfServers(const Processes& processes) {
  double sum = 0;
  for (const RemoteServer& server : processes.servers) {
    const absl::StatusOr<double> cpu = CpuSecondsOf(server.process->pid());
    if (!cpu.ok()) return cpu;
    sum += *cpu;
  }
  return sum;
}

std::vector<double> Values(const Results& results, double RoundResult::*field) {
  std::vector<double> values;
  for (const RoundResult& result : results) values.push_back(result.*field);
  return values;
}

double Sum(const Results& results, double RoundResult::*field) {
  double sum = 0;
  for (const RoundResult& result : results) sum += result.*field;
  return sum;
}

// Combines the clients' results into one. `servers_cpu_s` includes the clients'
// warm-up.
RoundResult Join(const Results& results, double servers_cpu_s) {
  RoundResult all;
  for (auto field :
       {&RoundResult::p50_us, &RoundResult::p90_us,
        &RoundResult::eager_max_bytes, &RoundResult::chunk_bytes}) {
    all.*field = Median(Values(results, field));
  }
  for (auto field : {&RoundResult::p99_us, &RoundResult::p999_us}) {
    all.*field = SpreadOf(Values(results, field)).max;
  }
  for (auto field : {&RoundResult::rpcs, &RoundResult::mb_per_s}) {
    all.*field = Sum(results, field);
  }
  double clients_cpu_us = 0;
  for (const RoundResult& result : results) {
    clients_cpu_us += result.cpu_us * result.rpcs;
  }
  const double measured_part = kWarmUpPart / (kWarmUpPart + 1.0);
  all.cpu_us =
      (clients_cpu_us + servers_cpu_s * 1e6 * measured_part) / all.rpcs;
  return all;
}

absl::StatusOr<RoundResult> MeasureSize(const Processes& processes,
                                        const Cell& cell) {
  // Wait until all clients are ready. A ready client sends an empty result.
  const absl::StatusOr<Results> ready = ReadAll(processes, cell);
  if (!ready.ok()) return ready.status();
  const absl::StatusOr<double> before = CpuSecondsOfServers(processes);
  for (const auto& client : processes.clients) client->Go();
  const absl::StatusOr<Results> results = ReadAll(processes, cell);
  const absl::StatusOr<double> after = CpuSecondsOfServers(processes);
  for (const absl::Status& status :
       {results.status(), before.status(), after.status()}) {
    if (!status.ok()) return status;
  }
  return Join(*results, *after - *before);
}

}  // namespace

absl::StatusOr<Results> MeasureServers(const RunOptions& options,
                                       Transport transport, Api api,
                                       int clients) {
  if (transport == Transport::kInproc) {
    return absl::UnavailableError("servers are other processes");
  }
  const absl::StatusOr<Processes> processes =
      Start(options, transport, api, clients);
  if (!processes.ok()) return processes.status();
  Results results;
  for (size_t bytes : options.message_sizes()) {
    const Cell cell{Benchmark::kServers, transport, api, bytes, {}, clients};
    const absl::StatusOr<RoundResult> result = MeasureSize(*processes, cell);
    if (!result.ok()) return result.status();
    results.push_back(*result);
  }
  return results;
}

}  // namespace bench
}  // namespace penstock
