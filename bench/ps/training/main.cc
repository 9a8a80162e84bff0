// Measures a parameter server end to end: the same service over stock gRPC and
// over Penstock, and a plain program that steps in its own memory. See
// docs/method.md.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "bench/ps/training/figures.h"
#include "bench/ps/training/report.h"
#include "bench/ps/training/roles.h"
#include "bench/ps/training/workload.h"
#include "bench/rpc/setup/child_process.h"
#include "nlohmann/json.hpp"

namespace penstock::bench {
namespace {

constexpr int kStartTimeoutMs = 300'000;  // includes filling a sparse table
constexpr int kRoundTimeoutMs = 120'000;

struct Contender {
  std::string name;
  absl::optional<Transport> transport;  // empty for the plain program
};

const std::vector<Contender>& AllContenders() {
  static const auto* const all =
      new std::vector<Contender>{{"stock", Transport::kTcp},
                                 {"tcp", Transport::kPenstockTcp},
                                 {"shm", Transport::kShm},
                                 {kPlain, absl::nullopt}};
  return *all;
}

struct Flags {
  std::vector<std::string> workloads;
  std::vector<std::string> contenders;
  int rounds = 9;
  std::string json;
  // The flags of child processes, see roles.h.
  std::string server;
  std::string worker;
  bool plain = false;
  RoleOptions role;
};

// A contender's processes while they run.
struct Running {
  Row row;
  std::unique_ptr<ChildProcess> server;  // ends after the worker
  std::unique_ptr<ChildProcess> worker;
};

absl::StatusOr<std::string> Hear(ChildProcess* child, int timeout_ms) {
  auto line = child->ReadLine(timeout_ms);
  if (!line.ok() || !absl::StartsWith(*line, kErrorPrefix)) return line;
  return absl::UnavailableError(*line);
}

std::vector<std::string> RoleFlags(const RoleOptions& role) {
  return {absl::StrCat("--workload=", role.workload),
          absl::StrCat("--elements=", role.sizes.elements),
          absl::StrCat("--variables=", role.sizes.variables),
          absl::StrCat("--rows=", role.sizes.rows),
          absl::StrCat("--batch=", role.sizes.batch),
          absl::StrCat("--zipf=", role.sizes.zipf),
          absl::StrCat("--seconds=", role.seconds),
          absl::StrCat("--address=", role.address),
          absl::StrCat("--server-pid=", role.server)};
}

absl::StatusOr<Running> Start(const Contender& contender, RoleOptions role) {
  Running running;
  running.row.contender = contender.name;
  std::string as = "--plain";
  if (contender.transport.has_value()) {
    const absl::string_view name = Name(*contender.transport);
    auto server = ChildProcess::Start({absl::StrCat("--server=", name)});
    if (!server.ok()) return server.status();
    running.server = *std::move(server);
    auto address = Hear(running.server.get(), kStartTimeoutMs);
    if (!address.ok()) return address.status();
    role.address = *address;
    role.server = running.server->pid();
    as = absl::StrCat("--worker=", name);
  }
  std::vector<std::string> flags = RoleFlags(role);
  flags.push_back(as);
  auto worker = ChildProcess::Start(flags);
  if (!worker.ok()) return worker.status();
  running.worker = *std::move(worker);
  auto ready = Hear(running.worker.get(), kStartTimeoutMs);
  if (!ready.ok()) return ready.status();
  return running;
}

absl::Status RunRound(Running* running) {
  running->worker->Go();
  auto line = Hear(running->worker.get(), kRoundTimeoutMs);
  if (!line.ok()) return line.status();
  auto figures = FiguresFromLine(*line);
  if (!figures.ok()) return figures.status();
  running->row.rounds.push_back(*figures);
  return absl::OkStatus();
}

// Measures all contenders in each round. Each round begins with another
// contender, so that a disturbance of the machine affects all alike.
absl::Status Measure(int rounds, std::vector<Running>* all) {
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < all->size(); ++i) {
      Running& running = (*all)[(i + round) % all->size()];
      absl::Status status = RunRound(&running);
      if (status.ok()) continue;
      return absl::Status(status.code(), absl::StrCat(running.row.contender,
                                                      ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

bool IsSparse(absl::string_view workload) {
  return workload == "uniform" || workload == "zipf";
}

absl::StatusOr<std::vector<Row>> MeasureWorkload(const Flags& flags,
                                                 const std::string& workload) {
  RoleOptions role = flags.role;
  role.workload = workload;
  std::vector<Running> all;
  for (const Contender& contender : AllContenders()) {
    const bool is_wanted =
        flags.contenders.empty() ||
        std::find(flags.contenders.begin(), flags.contenders.end(),
                  contender.name) != flags.contenders.end();
    const bool can = contender.transport.has_value() || workload == "dense" ||
                     workload == "dense4";
    if (!is_wanted || !can) continue;
    auto running = Start(contender, role);
    if (!running.ok()) return running.status();
    all.push_back(*std::move(running));
  }
  absl::Status status = Measure(flags.rounds, &all);
  if (!status.ok()) return status;
  std::vector<Row> rows;
  rows.reserve(all.size());
  for (Running& running : all) rows.push_back(std::move(running.row));
  return rows;
}

int Complain(absl::string_view message) {
  std::cerr << "training: " << message << std::endl;
  return 1;
}

int MeasureAll(const Flags& flags) {
  nlohmann::json json = nlohmann::json::object();
  for (const std::string& workload : flags.workloads) {
    const auto rows = MeasureWorkload(flags, workload);
    if (!rows.ok()) return Complain(rows.status().message());
    PrintTable(workload, IsSparse(workload) ? flags.role.sizes.batch : 0, *rows,
               std::cout);
    json[workload] = ToJson(*rows);
  }
  if (!std::cout) return Complain("cannot write the table");
  if (flags.json.empty()) return 0;
  std::ofstream file(flags.json);
  file << json.dump(1) << std::endl;
  return file ? 0 : Complain(absl::StrCat("cannot write ", flags.json));
}

int RunRole(const Flags& flags) {
  if (flags.plain) RunPlain(flags.role);
  const bool is_server = !flags.server.empty();
  const auto transport =
      ParseTransport(is_server ? flags.server : flags.worker);
  if (!transport.ok()) return Complain(transport.status().message());
  if (is_server) RunServer(*transport);
  RunWorker(*transport, flags.role);
}

void AddFlags(CLI::App* app, Flags* flags) {
  Sizes& sizes = flags->role.sizes;
  app->add_option("--workloads", flags->workloads, "names, with commas")
      ->delimiter(',')
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kWorkloads),
                                                     std::end(kWorkloads))))
      ->capture_default_str();
  std::vector<std::string> contenders;
  for (const Contender& each : AllContenders()) contenders.push_back(each.name);
  app->add_option("--contenders", flags->contenders,
                  "names, with commas; default: all")
      ->delimiter(',')
      ->check(CLI::IsMember(contenders));
  app->add_option("--rounds", flags->rounds, "of each contender, by turns")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app->add_option("--seconds", flags->role.seconds, "of a round")
      ->check(CLI::Range(0.0, 60.0))
      ->capture_default_str();
  app->add_option("--elements", sizes.elements, "f32 of the dense workloads")
      ->check(CLI::Range(int64_t{4}, int64_t{1} << 30))
      ->capture_default_str();
  app->add_option("--variables", sizes.variables, "of 256 B, of `small`")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app->add_option("--rows", sizes.rows, "of 64 floats, of sparse workloads")
      ->check(CLI::Range(uint64_t{2}, uint64_t{1} << 32))
      ->capture_default_str();
  app->add_option("--batch", sizes.batch, "ids of a step")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--zipf", sizes.zipf, "the exponent of Zipf's law")
      ->check(CLI::Range(1.01, 10.0))
      ->capture_default_str();
  app->add_option("--json", flags->json, "write all figures to this file");
  app->add_option("--server", flags->server)->group("");
  app->add_option("--worker", flags->worker)->group("");
  app->add_flag("--plain", flags->plain)->group("");
  app->add_option("--workload", flags->role.workload)->group("");
  app->add_option("--address", flags->role.address)->group("");
  app->add_option("--server-pid", flags->role.server)->group("");
}

int Main(int argc, char** argv) {
  Flags flags;
  flags.workloads.assign(std::begin(kWorkloads), std::end(kWorkloads));
  CLI::App app(
      "One worker of one parameter server: pulls, pushes and whole steps, "
      "over\n"
      "stock gRPC and over Penstock, each process on its own.");
  AddFlags(&app, &flags);
  CLI11_PARSE(app, argc, argv);
  const bool is_child =
      flags.plain || !flags.server.empty() || !flags.worker.empty();
  return is_child ? RunRole(flags) : MeasureAll(flags);
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) { return penstock::bench::Main(argc, argv); }
