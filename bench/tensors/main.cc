// tensors: measures how long one step's variables of a real model take to reach
// their reader; see docs/method.md.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/rpc/message/devices.h"
#include "bench/tensors/client.h"
#include "bench/tensors/contender.h"
#include "bench/tensors/models.h"
#include "bench/tensors/report.h"
#include "bench/tensors/server.h"

namespace penstock::bench {
namespace {

struct Flags {
  std::vector<std::string> models;
  std::vector<std::string> contenders;
  std::string memory = "host";
  int rounds = 5;
  double seconds = 1;
  int steps = 0;  // 0: limited by time
  std::string host = "127.0.0.1";
  // The flags of child processes; see server.h and client.h.
  std::string server;
  std::string client;
  std::string model;
};

int Complain(int code, absl::string_view message) {
  std::cerr << "tensors: " << message << std::endl;
  return code;
}

std::vector<std::string> ModelNames() {
  std::vector<std::string> names;
  for (const EmbeddedModel& model : EmbeddedModels()) {
    names.emplace_back(model.name);
  }
  return names;
}

absl::StatusOr<std::vector<Row>> MakeRows(const Flags& flags) {
  std::vector<Row> rows;
  if (flags.contenders.empty()) {
    for (const Contender& contender : AllContenders()) {
      const bool is_asked_for =
          UsesDevice(contender) == (flags.memory == "device");
      if (contender.by_default && is_asked_for)
        rows.push_back({contender, {}, ""});
    }
  }
  for (const std::string& name : flags.contenders) {
    const absl::StatusOr<Contender> contender = FindContender(name);
    if (!contender.ok()) return contender.status();
    rows.push_back({*contender, {}, ""});
  }
  return rows;
}

// Measures every contender once per round. Each round begins with another
// contender, so that a disturbance of the machine affects all alike.
absl::Status MeasureModel(const Flags& flags, const Model& model,
                          std::vector<Row>* rows) {
  const ClientOptions options = {flags.host, absl::Seconds(flags.seconds),
                                 flags.steps};
  for (int round = 0; round < flags.rounds; ++round) {
    for (size_t i = 0; i < rows->size(); ++i) {
      Row& row = (*rows)[(i + round) % rows->size()];
      if (!row.unavailable.empty()) continue;
      const absl::StatusOr<Step> step =
          MeasureInChild(row.contender, model, options);
      if (absl::IsUnavailable(step.status())) {
        row.unavailable = std::string(step.status().message());
      } else if (!step.ok()) {
        return step.status();
      } else {
        row.rounds.push_back(*step);
      }
    }
  }
  return absl::OkStatus();
}

int MeasureAll(const Flags& flags) {
  const absl::StatusOr<std::vector<Row>> empty_rows = MakeRows(flags);
  if (!empty_rows.ok()) return Complain(2, empty_rows.status().message());
  std::vector<Model> models;
  for (const std::string& name :
       flags.models.empty() ? ModelNames() : flags.models) {
    absl::StatusOr<Model> model = FindModel(name);
    if (!model.ok()) return Complain(2, model.status().message());
    models.push_back(*std::move(model));
  }
  if (std::any_of(empty_rows->begin(), empty_rows->end(),
                  [](const Row& row) { return UsesDevice(row.contender); })) {
    const absl::Status device = CheckDevice();
    if (!device.ok()) return Complain(1, device.message());
  }
  bool is_complete = true;
  for (const Model& model : models) {
    std::vector<Row> rows = *empty_rows;
    const absl::Status status = MeasureModel(flags, model, &rows);
    if (!status.ok()) return Complain(1, status.message());
    PrintTable(model, rows, std::cout);
    is_complete = is_complete &&
                  std::all_of(rows.begin(), rows.end(), [](const Row& row) {
                    return row.unavailable.empty();
                  });
  }
  if (!std::cout) return Complain(1, "cannot write the table");
  if (!is_complete) return Complain(1, "not all was available, see the table");
  return 0;
}

int RunChild(const Flags& flags) {
  const auto contender =
      FindContender(flags.server.empty() ? flags.client : flags.server);
  if (!contender.ok()) return Complain(2, contender.status().message());
  if (!flags.server.empty()) RunServer(*contender, flags.host);
  const absl::StatusOr<Model> model = FindModel(flags.model);
  if (!model.ok()) return Complain(2, model.status().message());
  RunClient(*contender, *model,
            {flags.host, absl::Seconds(flags.seconds), flags.steps});
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "Sends one step's variables of real models, and measures until the\n"
      "handler has them and until it has read every byte, over stock gRPC, "
      "over\n"
      "Penstock, and in one process.");
  app.add_option("--models", flags.models, "names, with commas; default: all")
      ->delimiter(',');
  app.add_option("--contenders", flags.contenders,
                 "names, with commas; the last columns compare with the first")
      ->delimiter(',');
  app.add_option("--memory", flags.memory,
                 "where the variables are: host, or device, an NVIDIA GPU: "
                 "then other contenders are the default")
      ->check(CLI::IsMember({"host", "device"}))
      ->capture_default_str();
  app.add_option("--rounds", flags.rounds)
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds, "of each contender in each round")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option(kStepsFlag, flags.steps,
                 "of each contender in each round, instead of --seconds")
      ->check(CLI::NonNegativeNumber);
  app.add_option(kHostFlag, flags.host, "address of this machine to go through")
      ->capture_default_str();
  app.add_option(kServerFlag, flags.server)->group("");
  app.add_option(kClientFlag, flags.client)->group("");
  app.add_option(kModelFlag, flags.model)->group("");
  CLI11_PARSE(app, argc, argv);
  if (flags.server.empty() && flags.client.empty()) return MeasureAll(flags);
  return RunChild(flags);
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) { return penstock::bench::Main(argc, argv); }
