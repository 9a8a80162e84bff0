#include "bench/rpc/setup/options.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "transport/base/flag_errors.h"
#include "transport/base/parse_error_text.h"

namespace penstock {
namespace bench {
namespace {

// A quick run is for tests and a first impression: 45 cells in three rounds,
// each with a new server, take less than ten seconds.
constexpr int kQuickRounds = 3;
constexpr double kQuickSeconds = 0.03;
// The default number of channels for kIdle: a process that knows many servers.
constexpr int kIdleChannels = 100;

// The flags as CLI11 has parsed them, not yet checked.
struct Flags {
  std::string message;
  std::string memory;
  std::string benchmarks;
  std::string transports;
  std::string apis;
  std::string sizes;
  std::string scheme;
  std::string server_addresses;
  std::string speed;
  bool quick = false;
};

template <typename T>
absl::Status ParseList(
    absl::string_view flag, absl::string_view text,
    const std::function<absl::StatusOr<T>(absl::string_view)>& parse,
    std::vector<T>* out) {
  std::vector<T> values;
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    const absl::StatusOr<T> value = parse(item);
    if (!value.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": ", value.status().message()));
    }
    if (std::find(values.begin(), values.end(), *value) != values.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": \"", item, "\" is given twice"));
    }
    values.push_back(*value);
  }
  *out = std::move(values);
  return absl::OkStatus();
}

absl::Status CheckRange(absl::string_view flag, double value, double min,
                        double max) {
  // Uses a negated comparison, which also rejects NaN.
  if (!(value >= min && value <= max)) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": ", value, " is not between ", min, " and ", max));
  }
  return absl::OkStatus();
}

bool HasIdle(const RunOptions& options) {
  return absl::c_linear_search(options.benchmarks, Benchmark::kIdle);
}

bool HasRawOnly(const RunOptions& options) {
  return std::any_of(options.benchmarks.begin(), options.benchmarks.end(),
                     [](Benchmark benchmark) {
                       return benchmark == Benchmark::kStream ||
                              benchmark == Benchmark::kResend ||
                              benchmark == Benchmark::kHandover;
                     });
}

bool MayLieOnDevice(const RunOptions& options) {
  return options.message != MessageForm::kProtobuf &&
         std::none_of(options.benchmarks.begin(), options.benchmarks.end(),
                      [](Benchmark benchmark) {
                        return benchmark == Benchmark::kReplay ||
                               benchmark == Benchmark::kHandover;
                      });
}

absl::Status CheckNumbers(const CLI::App& app, const RunOptions& options) {
  absl::Status status = CheckRange("--rounds", options.rounds, 1, 1000);
  status.Update(CheckRange("--seconds", options.seconds, 0.001, 3600));
  // kIdle needs two channels, because the memory of the first is subtracted.
  status.Update(CheckRange("--channels", options.channels,
                           HasIdle(options) ? 2 : 1, 1000));
  status.Update(CheckRange("--threads", options.threads, 1, 256));
  status.Update(CheckRange("--window", options.window, 1, 1024));
  status.Update(CheckRange("--warm-up", options.warm_up, 0, 1e6));
  status.Update(CheckRange("--buffers", options.buffers.count, 1, 100000));
  status.Update(CheckRange("--servers", options.servers, 1, 64));
  for (int workers : options.workers) {
    status.Update(CheckRange("--workers", workers, 1, 64));
    if (absl::c_count(options.workers, workers) > 1) {
      status.Update(absl::InvalidArgumentError("--workers: a number twice"));
    }
  }
  if (app.count("--rpcs") > 0) {
    status.Update(CheckRange("--rpcs", options.rpcs, 1, 1e9));
  }
  return status;
}

absl::Status ReadLists(const CLI::App& app, const Flags& flags,
                       RunOptions* options) {
  absl::Status status;
  if (app.count("--benchmark") > 0) {
    status.Update(ParseList<Benchmark>("--benchmark", flags.benchmarks,
                                       ParseBenchmark, &options->benchmarks));
  }
  if (app.count("--transports") > 0) {
    options->transports_named = true;
    status.Update(ParseList<Transport>("--transports", flags.transports,
                                       ParseTransport, &options->transports));
  }
  if (app.count("--api") > 0) {
    status.Update(
        ParseList<Api>("--api", flags.apis, ParseApi, &options->apis));
  }
  if (app.count("--message") > 0) {
    const absl::StatusOr<MessageForm> form = ParseMessageForm(flags.message);
    if (form.ok()) options->message = *form;
    status.Update(form.status());
  }
  options->on_device = flags.memory == "device";
  if (app.count("--sizes") > 0) {
    status.Update(
        ParseList<size_t>("--sizes", flags.sizes, ParseSize, &options->sizes));
  }
  if (app.count("--scheme") > 0) {
    const absl::StatusOr<Scheme> scheme = ParseScheme(flags.scheme);
    if (scheme.ok()) options->buffers.scheme = *scheme;
    status.Update(scheme.status());
  }
  if (app.count("--server-addresses") > 0) {
    options->server_addresses = absl::StrSplit(flags.server_addresses, ',');
  }
  return status;
}

// The sizes small, medium and large of TF-gRPC-Bench.
constexpr size_t kSmall = 10;
constexpr size_t kMedium = 10000;
constexpr size_t kLarge = 1000000;
constexpr int kBuffers = 10;

absl::Status FinishScheme(const CLI::App& app, RunOptions* options) {
  if (options->buffers.scheme == Scheme::kEqual) return absl::OkStatus();
  if (app.count("--sizes") == 0) options->sizes = {kSmall, kMedium, kLarge};
  if (app.count("--buffers") == 0) options->buffers.count = kBuffers;
  if (options->buffers.scheme == Scheme::kSkew && options->sizes.size() != 3) {
    return absl::InvalidArgumentError(
        "--scheme=skew needs three --sizes: small, medium, large");
  }
  if (options->message_sizes().front() > kMaxPayload) {
    return absl::InvalidArgumentError(
        "--buffers: they have more than 1GiB together");
  }
  return absl::OkStatus();
}

absl::Status ReadSpeed(const std::string& text, double* speed) {
  if (text == "max") return absl::OkStatus();
  if (!absl::SimpleAtod(text, speed)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--speed: \"", text, "\" is neither a number nor max"));
  }
  return CheckRange("--speed", *speed, 0.001, 1000);
}

// Reads a replay's recording, and sets the options that follow from it.
absl::Status FinishReplay(const CLI::App& app, const Flags& flags,
                          RunOptions* options) {
  const bool replays =
      absl::c_linear_search(options->benchmarks, Benchmark::kReplay);
  const bool has_path = app.count("--trace") > 0;
  if (!replays && !has_path && app.count("--speed") == 0) {
    return absl::OkStatus();
  }
  if (replays != has_path && !options->server_role) {
    return absl::InvalidArgumentError(
        "--benchmark=replay needs a --trace, and only replay has --speed");
  }
  if (options->benchmarks.size() > 1) {
    return absl::InvalidArgumentError(
        "--benchmark: replay cannot run with other benchmarks");
  }
  if (app.count("--api") == 0) options->apis = {Api::kSync};
  if (options->apis != std::vector<Api>{Api::kSync}) {
    return absl::InvalidArgumentError("--api: replay has sync only");
  }
  for (const char* flag : {"--sizes", "--scheme", "--channels", "--threads",
                           "--seconds", "--rpcs", "--message"}) {
    if (!options->server_role && !options->client_role && app.count(flag) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": the recording decides that"));
    }
  }
  absl::Status status;
  if (app.count("--speed") > 0)
    status = ReadSpeed(flags.speed, &options->speed);
  if (!status.ok()) return status;
  auto recording = LoadRecording(options->recording_path);
  if (!recording.ok()) return recording.status();
  options->channels = static_cast<int>(recording->clients);
  options->recording = std::make_shared<const Recording>(*std::move(recording));
  return absl::OkStatus();
}

void Declare(CLI::App* app, Flags* flags, RunOptions* options) {
  app->add_option("--benchmark", flags->benchmarks,
                  "latency, bandwidth, push, stream, resend, handover, "
                  "ps-throughput, replay, beside, idle (default latency)");
  app->add_option("--transports", flags->transports,
                  "tcp, uds, inproc, penstock-tcp, shm, verbs "
                  "(default these), tls, penstock-tls, shm-tls, "
                  "penstock-client, penstock-server");
  app->add_option("--api", flags->apis, "sync, async, callback (default all)");
  app->add_option("--sizes", flags->sizes,
                  "bytes of a message (default 8,64KiB,1MiB)");
  app->add_option("--message", flags->message,
                  "raw, protobuf (as a stub has it), tensor (default raw); "
                  "not with stream, resend and handover");
  app->add_option("--memory", flags->memory,
                  "where messages are: host, or device, an NVIDIA GPU "
                  "(default host)")
      ->check(CLI::IsMember({"host", "device"}));
  app->add_option("--buffers", options->buffers.count,
                  "that a message consists of (default 1, with --scheme 10)");
  app->add_option("--scheme", flags->scheme,
                  "equal (buffers of one size); or --sizes are those of the "
                  "buffers: uniform (by turns), random, skew (60 % the "
                  "largest, 30 %, 10 %), of 10, 10kB and 1MB by default");
  app->add_option("--servers", options->servers,
                  "processes, ps-throughput only (default 2)");
  app->add_option("--workers", options->workers,
                  "processes, ps-throughput only (default 2); several numbers, "
                  "such as 1,2,4,8,16, are a curve")
      ->delimiter(',');
  app->add_option("--trace", options->recording_path,
                  "a file of PENSTOCK_RECORD or --record, replay only");
  app->add_option("--speed", flags->speed,
                  "replay only: max (default; each client's calls in their "
                  "order, as fast as they go), or a number (1: each call at "
                  "its time)");
  app->add_option("--rounds", options->rounds,
                  "each runs every cell once (default 5)");
  CLI::Option* seconds = app->add_option("--seconds", options->seconds,
                                         "per cell and round (default 0.2)");
  app->add_option("--rpcs", options->rpcs,
                  "per cell and round, instead of --seconds")
      ->excludes(seconds);
  app->add_option("--threads", options->threads,
                  "concurrent callers on each channel (default 1)");
  app->add_option("--channels", options->channels,
                  "connections to the server (default 1, idle 100)");
  app->add_option("--window", options->window,
                  "RPCs outstanding per caller; bandwidth, push, "
                  "ps-throughput and beside only (default 1)");
  app->add_option("--warm-up", options->warm_up,
                  "RPCs of up to the largest size on each channel, before "
                  "its first cell (default 0)");
  app->add_option("--address", options->address,
                  "where the server listens (default 127.0.0.1)");
  app->add_option("--client-device", options->client_device,
                  "RDMA device, verbs only (default any)");
  app->add_option("--server-device", options->server_device,
                  "RDMA device, verbs only (default any)");
  app->add_option("--record", options->record_path,
                  "each server process records its calls here, %p is its pid; "
                  "see docs/replay.md");
  app->add_option("--json", options->json_path, "also write the table here");
  app->add_option("--csv", options->csv_path, "also write the table here");
  app->add_option("--html", options->html_path,
                  "also write a page with plots here");
  app->add_flag("--details", options->details,
                "add columns: more percentiles, CPU time of both processes");
  app->add_flag("--faults", options->page_faults,
                "add a column of page faults that needed no disk, per RPC, of "
                "both processes");
  app->add_flag("--quick", flags->quick, "3 rounds of 0.03 s");
  app->add_flag("--list", options->list, "name benchmarks, transports, APIs");
  // These flags do not appear in --help. See ServerFlags() and ClientFlags().
  app->add_flag("--server-role", options->server_role)->group("");
  app->add_flag("--client-role", options->client_role)->group("");
  app->add_option("--server-addresses", flags->server_addresses)->group("");
  app->add_option("--identity", options->identity)->group("");
}

absl::Status Finish(const CLI::App& app, const Flags& flags,
                    RunOptions* options) {
  if (flags.quick && app.count("--rounds") == 0) {
    options->rounds = kQuickRounds;
  }
  if (flags.quick && app.count("--seconds") == 0) {
    options->seconds = kQuickSeconds;
  }
  absl::Status status = ReadLists(app, flags, options);
  if (HasIdle(*options) && app.count("--channels") == 0) {
    options->channels = kIdleChannels;
  }
  status.Update(FinishScheme(app, options));
  if (status.ok()) status = FinishReplay(app, flags, options);
  status.Update(CheckNumbers(app, *options));
  if (options->message != MessageForm::kRaw && HasRawOnly(*options)) {
    status.Update(absl::InvalidArgumentError(
        "--message: stream, resend and handover have raw messages only"));
  }
  if (options->on_device && !MayLieOnDevice(*options)) {
    status.Update(absl::InvalidArgumentError(
        "--memory=device: not with replay, handover, and protobuf's messages"));
  }
  if (!options->buffers.is_one() && HasRawOnly(*options)) {
    status.Update(absl::InvalidArgumentError(
        "--buffers: stream, resend and handover have one buffer only"));
  }
  const std::pair<const char*, const std::string*> paths[] = {
      {"--json", &options->json_path},
      {"--csv", &options->csv_path},
      {"--html", &options->html_path}};
  for (const auto& [flag, path] : paths) {
    if (app.count(flag) > 0 && path->empty()) {
      status.Update(absl::InvalidArgumentError(
          absl::StrCat(flag, ": the path is empty")));
    }
  }
  if ((options->server_role || options->client_role) &&
      (options->transports.size() != 1 || options->apis.size() != 1 ||
       options->benchmarks.size() != 1)) {
    status.Update(absl::InvalidArgumentError(
        "a role has one --benchmark, one --transports and one --api"));
  }
  return status;
}

}  // namespace

std::vector<size_t> RunOptions::message_sizes() const {
  if (recording != nullptr) return {recording->bytes};
  if (buffers.scheme == Scheme::kEqual) return sizes;
  const BufferSizes mixed = MixedBuffers(buffers, sizes);
  return {std::accumulate(mixed.begin(), mixed.end(), size_t{0})};
}

absl::StatusOr<CommandLine> ParseCommandLine(int argc,
                                             const char* const* argv) {
  CLI::App app(
      "Latency and bandwidth of one RPC over gRPC's and Penstock's "
      "transports.",
      "rpc");
  Flags flags;
  CommandLine command;
  Declare(&app, &flags, &command.options);
  // Reject a flag without a value. CLI11 would use the next flag as the value.
  const std::string empty = base::FlagWithoutValue({argv, argv + argc});
  if (!empty.empty()) return absl::InvalidArgumentError(empty);
  // Catches the exceptions by which CLI11 reports errors.
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    command.help = app.help();
    return command;
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(base::ParseErrorText(app, error));
  }
  const absl::Status status = Finish(app, flags, &command.options);
  if (!status.ok()) return status;
  return command;
}

}  // namespace bench
}  // namespace penstock
