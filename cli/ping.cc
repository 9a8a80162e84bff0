#include "cli/ping.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/interrupt.h"
#include "cli/ping_table.h"
#include "cli/prober.h"
#include "cli/target.h"
#include "cli/text/units.h"
#include "transport/base/printable.h"
#include "transport/base/steady_time.h"

namespace penstock::cli {
namespace {

// The interval between progress lines of --flood.
constexpr absl::Duration kFloodLine = absl::Seconds(1);
// The pause after a failed call, so that a flood of failing calls does not
// occupy a core.
constexpr absl::Duration kAfterFailure = absl::Milliseconds(100);
constexpr size_t kMaxTextBytes = 400;

// One execution of the command.
class Run {
 public:
  Run(Output* out, const Target& target, Prober* prober, PingSummary* summary,
      bool is_quiet)
      : out_(out),
        target_(target),
        prober_(prober),
        summary_(summary),
        is_quiet_(is_quiet),
        printer_(out, Sizes(*summary)) {}

  // Makes one call of each size. Returns true if all were answered.
  bool Round() {
    ++round_;
    bool is_good = true;
    for (PingSeries& series : summary_->series) {
      absl::Duration took;
      const grpc::Status status = prober_->Ping(series.bytes, &took);
      if (Interrupted() && !status.ok()) {
        is_cut_ = true;
        return is_good;
      }
      if (status.ok()) {
        series.times.Add(took);
        series.recent.Add(took);
      } else {
        is_good = false;
        ++series.failed;
        Failed(status);
      }
    }
    return is_good;
  }

  void ShowHeader() {
    if (!is_quiet_) printer_.Header();
  }
  void ShowRound() {
    if (!is_quiet_ && !is_cut_) printer_.Row(round_, &summary_->series);
    ShowPath();
  }
  int64_t round() const { return round_; }

 private:
  static std::vector<size_t> Sizes(const PingSummary& summary) {
    std::vector<size_t> sizes;
    for (const PingSeries& each : summary.series) sizes.push_back(each.bytes);
    return sizes;
  }

  void Failed(const grpc::Status& status) {
    summary_->error = base::Printable(status.error_message(), kMaxTextBytes);
    if (is_quiet_) return;
    const std::string line =
        absl::StrCat("round ", round_, ": ", summary_->error);
    out_->Write(absl::StrCat(Wrapped(line, 0, out_->columns()), "\n"));
  }

  // Reports a change of the path.
  void ShowPath() {
    const PathReport path = target_.Path(prober_->channel());
    if (path.path.empty() || path.path == path_) return;
    if (!path_.empty() && !is_quiet_) {
      const std::string line = absl::StrCat("now over ", path.ToString());
      out_->Write(absl::StrCat(Wrapped(line, 0, out_->columns()), "\n"));
    }
    path_ = path.path;
  }

  Output* const out_;
  const Target& target_;
  Prober* const prober_;
  PingSummary* const summary_;
  const bool is_quiet_;
  RoundPrinter printer_;
  int64_t round_ = 0;
  bool is_cut_ = false;  // Ctrl-C has interrupted the current round
  std::string path_;
};

class Ping final : public Command {
 public:
  Manual manual() const override {
    return {
        "ping",
        "shows the path to a server, and the time of calls",
        "Calls any gRPC server, with or without Penstock. Calls its echo "
        "service if the server is penstock serve, otherwise gRPC's health "
        "service, otherwise a method that the server does not have. The first "
        "lines show the called method, the path, and the reason for not using "
        "a better one. Ctrl-C ends the command with a summary.\n\nThe time of "
        "a call lasts from its start until every byte of the answer was "
        "compared with the sent bytes. The server does not read the payload, "
        "so shm need not copy it. Calls a second apart include the wake-up of "
        "both sides; --flood measures calls back to back.",
        {{"penstock ping 127.0.0.1:50051", "one call per second, until Ctrl-C"},
         {"penstock ping ps0:50051 --flood --count=10000 "
          "--sizes=8,64KiB,1MiB",
          "ten thousand calls of each size, back to back"},
         {"penstock ping ps0:50051 --fabrics=tcp", "over tcp only"},
         {"penstock ping ps0:50051 --ca=ca.pem --count=3 --json",
          "over TLS, three calls, for a program"}},
        "at least one call was answered",
        "no answer came"};
  }

  void Declare(CLI::App* app) override {
    target_.Declare(app, /*is_required=*/true);
    app->add_option("-c,--count", count_,
                    "the number of rounds (default: until Ctrl-C)")
        ->type_name("N");
    app->add_option("-i,--interval", interval_text_,
                    "the time between rounds (default 1s)")
        ->type_name("TIME");
    app->add_option(
           "-s,--sizes", sizes_text_,
           "payload sizes; each round calls every size once (default 8)")
        ->type_name("LIST");
    app->add_flag("-f,--flood", flood_,
                  "no pause between rounds; print the medians each second");
    app->add_flag("-q,--quiet", quiet_, "print only the path and the summary");
    app->add_flag("--json", json_, "print one JSON object at the end");
  }

  absl::Status Check() override {
    absl::Status status = target_.Check();
    if (count_ < 1) {
      status.Update(absl::InvalidArgumentError("--count: must be 1 or more"));
    }
    const auto interval = ParseDuration(interval_text_);
    if (interval.ok()) interval_ = *interval;
    status.Update(Named("--interval", interval.status()));
    const auto sizes = ParseSizes(sizes_text_, kMaxPayload);
    if (sizes.ok()) sizes_ = *sizes;
    status.Update(Named("--sizes", sizes.status()));
    flood_ |= interval_ == absl::ZeroDuration();
    return status;
  }

  absl::StatusOr<int> Run(const Context& context) override {
    WatchInterrupts();
    const auto channel = target_.Open();
    if (!channel.ok()) return channel.status();
    Prober prober(*channel, target_.timeout());
    const grpc::Status found = prober.Find();
    if (!found.ok()) {
      return Interrupted() ? absl::CancelledError("interrupted")
                           : absl::UnavailableError(target_.Explain(found));
    }
    PingSummary summary = Describe(&prober);
    if (!json_) {
      context.out->Write(IntroductionText(summary, *context.out));
    }
    cli::Run run(context.out, target_, &prober, &summary, quiet_ || json_);
    run.ShowHeader();
    Loop(context.out, &run);
    context.out->Write(json_ ? SummaryJson(summary)
                             : SummaryText(summary, *context.out));
    for (const PingSeries& each : summary.series) {
      if (each.times.count() > 0) return kOk;
    }
    return kFailed;
  }

 private:
  static absl::Status Named(const char* flag, const absl::Status& status) {
    if (status.ok()) return status;
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": ", status.message()));
  }

  PingSummary Describe(Prober* prober) const {
    PingSummary summary;
    summary.target = target_.Name();
    summary.calls = prober->Describe();
    const PathReport path = target_.Path(prober->channel());
    summary.path = path.path;
    summary.detail = path.detail;
    summary.reason = path.reason;
    // Measures without a payload, because the server does not read the payload.
    std::vector<size_t> sizes = sizes_;
    if (prober->answer() == Answer::kStatus) sizes = {0};
    for (const size_t bytes : sizes) {
      summary.series.emplace_back();
      summary.series.back().bytes = bytes;
    }
    return summary;
  }

  void Loop(const Output* out, cli::Run* run) const {
    absl::Time next = base::SteadyNow();
    absl::Time shown = next;
    while (!Interrupted() && out->status().ok() && run->round() < count_) {
      const bool is_good = run->Round();
      const bool is_last = run->round() == count_;
      if (!flood_) {
        run->ShowRound();
        next += interval_;
        if (!is_last) SleepUntil(next);
        continue;
      }
      if (is_last || base::SteadyNow() >= shown + kFloodLine) {
        shown = base::SteadyNow();
        run->ShowRound();
      }
      if (!is_good) SleepUntil(base::SteadyNow() + kAfterFailure);
    }
  }

  Target target_;
  int64_t count_ = INT64_MAX;
  std::string interval_text_ = "1s";
  absl::Duration interval_;
  std::string sizes_text_ = "8";
  std::vector<size_t> sizes_;
  bool flood_ = false;
  bool quiet_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakePing() { return std::make_unique<Ping>(); }

}  // namespace penstock::cli
