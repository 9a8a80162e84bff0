// Measures a restore by several servers, compared with the restore of each
// server alone.
//
// Each server is a process. The servers write a checkpoint of dense tables, and
// are restarted in each measurement. "together" is the time of a chief's
// Define(): the choice of the checkpoint and the restore of all servers.
// "alone" is the time in which one server restores its part while the other
// servers are idle. The result is the median of the rounds, whose order
// alternates.

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "bench/rpc/setup/child_process.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "ps/client/checkpoint.h"
#include "ps/client/define.h"
#include "ps/client/fanout.h"
#include "ps/client/worker.h"
#include "ps/model/wire.h"
#include "ps/wire/ps.pb.h"
#include "tensor_service/calls.h"
#include "tensor_service/status.h"

namespace penstock::ps {
namespace {

using bench::ChildProcess;
using Clock = std::chrono::steady_clock;

constexpr int64_t kColumns = 64;
constexpr int kVariables = 16;
constexpr int kStartTimeoutMs = 60'000;

struct Options {
  std::string folder = ".";
  std::string server = "ps/ps_server";
  uint64_t megabytes = 2000;
  size_t servers = 4;
  int rounds = 3;
  std::string checkpoints;  // a folder that is kept; empty for a temporary one
  std::string own_folder;   // in a child process: the folder of the checkpoints
};

[[noreturn]] void Fail(absl::string_view what) {
  std::fprintf(stderr, "restore: %.*s\n", static_cast<int>(what.size()),
               what.data());
  std::exit(1);
}

void Require(const absl::Status& status) {
  if (!status.ok()) Fail(status.ToString());
}

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double MedianOf(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Makes this process a server, whose output goes to the parent.
[[noreturn]] void BecomeServer(const Options& options) {
  bench::BecomeChild();
  dup2(STDIN_FILENO, STDOUT_FILENO);
  const std::string checkpoints =
      absl::StrCat("--checkpoints=", options.own_folder);
  execl(options.server.c_str(), options.server.c_str(), "--listen=127.0.0.1:0",
        "--workers=1", "--quiet", "--restore=newest", checkpoints.c_str(),
        nullptr);
  Fail(absl::StrCat("cannot start ", options.server));
}

// Starts the server processes. They have no values yet.
class Servers {
 public:
  Servers(const Options& options, const std::string& checkpoints) {
    for (size_t i = 0; i < options.servers; ++i) {
      auto child =
          ChildProcess::Start({absl::StrCat("--own-folder=", checkpoints),
                               absl::StrCat("--server=", options.server)});
      Require(child.status());
      children_.push_back(*std::move(child));
      // Uses the same names in each start, so that each server restores its own
      // part.
      names_.push_back(absl::StrCat("ps", i, ":1"));
    }
    for (const auto& child : children_) {
      channels_.push_back(grpc::CreateCustomChannel(
          absl::StrCat("127.0.0.1:", PortOf(child.get())),
          grpc::InsecureChannelCredentials(), tensor::UnlimitedMessages()));
    }
  }
  ~Servers() {
    for (const auto& child : children_) kill(child->pid(), SIGKILL);
  }
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  const TrainingConnection::Channels& channels() const { return channels_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  static std::string PortOf(ChildProcess* child) {
    while (true) {
      auto line = child->ReadLine(kStartTimeoutMs);
      Require(line.status());
      absl::string_view port = *line;
      if (absl::ConsumePrefix(&port, "port ")) return std::string(port);
    }
  }

  std::vector<std::unique_ptr<ChildProcess>> children_;
  TrainingConnection::Channels channels_;
  std::vector<std::string> names_;
};

// Returns a model of Adagrad tables. Half of the bytes are values, half are
// slots.
Model ModelOf(const Options& options) {
  const auto rows = static_cast<int64_t>(options.megabytes * 1'000'000 /
                                         (2 * kColumns * sizeof(float)));
  Model model;
  model.tables.resize(kVariables);
  for (size_t i = 0; i < model.tables.size(); ++i) {
    TableSpec& table = model.tables[i];
    table.name = absl::StrCat("table", i);
    table.optimizer.rule = optim::Rule::kAdagrad;
    table.rows = DenseSpec{tensor::DType::kF32, {rows / kVariables, kColumns}};
  }
  return model;
}

Definition DefinitionOf(const Servers& servers, const Model& model) {
  Definition definition;
  definition.servers = servers.channels();
  definition.addresses = servers.names();
  definition.model = model;
  return definition;
}

// Writes a checkpoint after one step, and returns its size in bytes.
uint64_t Prepare(const Options& options, const std::string& folder) {
  const Servers servers(options, folder);
  const Model model = ModelOf(options);
  auto defined = Define(DefinitionOf(servers, model));
  Require(defined.status());
  Worker::Options joins;
  joins.connection = defined->connection;
  auto worker = Worker::Join(joins);
  Require(worker.status());
  auto values = tensor::Tensor::Allocate(
      tensor::DType::kF32, absl::get<DenseSpec>(model.tables[0].rows).shape);
  Require(values.status());
  float number = 0;
  for (float& each : *values->mutable_flat<float>()) each = number += 1e-3F;
  tensor::Bundle all;
  for (const TableSpec& table : model.tables) {
    all.tensors.push_back({table.name, *values});
  }
  Require((*worker)->Initialize(all));
  StepGradients gradients;
  gradients.dense = all;
  Require((*worker)->Push(0, gradients).status());
  const auto taken = TakeCheckpoint(*defined->connection, {});
  Require(taken.status());
  return taken->bytes;
}

// Returns the seconds in which all servers restore concurrently.
double RestoreTogether(const Options& options, const std::string& folder) {
  const Servers servers(options, folder);
  const auto begin = Clock::now();
  const auto defined = Define(DefinitionOf(servers, ModelOf(options)));
  Require(defined.status());
  if (defined->restored_step == 0) Fail("nothing was restored");
  return SecondsSince(begin);
}

v1::ChooseCutReply ChooseCut(const Servers& servers) {
  v1::ChooseCutRequest request;
  request.set_run(1);
  const auto bytes = Fanout({servers.channels()[0]})
                         .Call("ChooseCut", request, absl::Minutes(10));
  Require(bytes.status());
  v1::ChooseCutReply choice;
  Require(tensor::ToProto(bytes->front(), &choice));
  return choice;
}

// Returns the seconds in which one server restores its part. Excludes the
// choice of the checkpoint.
double RestoreAlone(const Options& options, const std::string& folder,
                    size_t server) {
  const Servers servers(options, folder);
  const v1::ChooseCutReply choice = ChooseCut(servers);
  v1::DefineRequest request;
  *request.mutable_model() = ToMessage(ModelOf(options));
  request.mutable_servers()->Assign(servers.names().begin(),
                                    servers.names().end());
  request.set_server(static_cast<uint32_t>(server));
  request.set_run(choice.run());
  *request.mutable_cut() = choice.cut();
  const auto begin = Clock::now();
  Require(Fanout({servers.channels()[server]})
              .Call("Define", request, absl::Minutes(10))
              .status());
  return SecondsSince(begin);
}

void Run(const Options& options) {
  std::string folder = options.checkpoints;
  if (folder.empty()) {
    folder = options.folder + "/penstock-restore-XXXXXX";
    if (mkdtemp(&folder[0]) == nullptr) Fail(folder);
  }
  if (std::filesystem::is_empty(folder)) {
    const uint64_t bytes = Prepare(options, folder);
    std::printf("%.0f MB on %zu servers\n", static_cast<double>(bytes) / 1e6,
                options.servers);
  }
  std::vector<double> together;
  std::vector<std::vector<double>> alone(options.servers);
  for (int round = 0; round < options.rounds; ++round) {
    const auto all = [&] {
      together.push_back(RestoreTogether(options, folder));
    };
    if (round % 2 == 0) all();
    for (size_t i = 0; i < options.servers; ++i) {
      alone[i].push_back(RestoreAlone(options, folder, i));
    }
    if (round % 2 == 1) all();
    std::printf("together %.2f s, alone", together.back());
    for (const auto& of_one : alone) std::printf(" %.2f", of_one.back());
    std::printf(" s\n");
    std::fflush(stdout);
  }
  double slowest = 0;
  for (const auto& of_one : alone) {
    slowest = std::max(slowest, MedianOf(of_one));
  }
  std::printf("together: median %.2f s, %.2f times the slowest server alone\n",
              MedianOf(together), MedianOf(together) / slowest);
  if (options.checkpoints.empty()) std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  CLI::App app("A restore by several servers, and by each of them alone.");
  penstock::ps::Options options;
  app.add_option("--folder", options.folder, "where")
      ->check(CLI::ExistingDirectory);
  app.add_option("--server", options.server, "the program of a server");
  app.add_option("--megabytes", options.megabytes, "values and slots")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--servers", options.servers)->check(CLI::Range(1, 16));
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 99));
  app.add_option("--checkpoints", options.checkpoints,
                 "keep the checkpoint here, and use the one that is here")
      ->check(CLI::ExistingDirectory);
  app.add_option("--own-folder", options.own_folder)->group("");
  CLI11_PARSE(app, argc, argv);
  if (!options.own_folder.empty()) penstock::ps::BecomeServer(options);
  penstock::ps::Run(options);
  return 0;
}
