#include "cli/top.h"

#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "cli/interrupt.h"
#include "cli/program.h"
#include "cli/text/units.h"
#include "cli/top/sample.h"
#include "cli/top/view.h"
#include "nlohmann/json.hpp"
#include "transport/base/printable.h"
#include "transport/base/steady_time.h"

namespace penstock::cli {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(5);
constexpr absl::Duration kMinInterval = absl::Milliseconds(100);
constexpr size_t kMaxNameBytes = 100;
// The control sequence that moves to the corner of the terminal, and clears it.
constexpr char kNewScreen[] = "\x1b[H\x1b[2J";

class Top final : public Command {
 public:
  Manual manual() const override {
    return {
        "top",
        "shows what a process does over Penstock, live",
        "Shows connections, paths, rates, the time of calls, memory, and "
        "failures. WHERE is the PID of a process of this machine, which is "
        "queried at its status socket, or the HOST:PORT or URL of a process's "
        "metrics (PENSTOCK_METRICS). Without WHERE, lists the processes that "
        "can be queried, with their PIDs.\n\nThe process needs no preparation, "
        "and queries cost it almost nothing. It accepts queries only of its "
        "own user and root, and is listed only for them.",
        {{"penstock top", "lists processes"},
         {"penstock top 4711", "shows process 4711 every second"},
         {"penstock top ps0:9464 --interval=5s",
          "a process on another machine"},
         {"penstock top 4711 --count=1 --json", "once, for a program"}},
        "it was shown until Ctrl-C, --count or the end of the process",
        "the process did not answer, or there is none"};
  }

  void Declare(CLI::App* app) override {
    app->add_option("where", where_,
                    "the PID of a process, or HOST:PORT of its metrics")
        ->type_name("WHERE");
    app->add_option("-i,--interval", interval_text_,
                    "the time between two samples (default 1s)")
        ->type_name("TIME");
    app->add_option("-n,--count", count_,
                    "the number of samples (default: until Ctrl-C)")
        ->type_name("N");
    app->add_flag("--json", json_, "print a JSON object per line and sample");
  }

  absl::Status Check() override {
    const absl::StatusOr<absl::Duration> interval =
        ParseDuration(interval_text_);
    if (!interval.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--interval: ", interval.status().message()));
    }
    if (*interval < kMinInterval) {
      return absl::InvalidArgumentError("--interval: at least 100ms");
    }
    if (count_ < 0) return absl::InvalidArgumentError("--count: at least 0");
    interval_ = *interval;
    if (absl::StartsWith(where_, ":")) {
      return absl::InvalidArgumentError(
          absl::StrCat("WHERE has no host: is it 127.0.0.1",
                       base::Printable(where_, kMaxNameBytes), "?"));
    }
    if (where_.empty() || absl::StrContains(where_, ':')) {
      return absl::OkStatus();
    }
    if (absl::SimpleAtoi(where_, &process_) && process_ > 0) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("\"", base::Printable(where_, kMaxNameBytes),
                     "\" is neither the PID of a process nor HOST:PORT"));
  }

  absl::StatusOr<int> Run(const Context& context) override {
    if (where_.empty()) return List(context.out);
    WatchInterrupts();
    absl::StatusOr<Sample> before = Look();
    if (!before.ok()) return before.status();
    for (int shown = 0; count_ == 0 || shown < count_; ++shown) {
      SleepUntil(base::SteadyNow() + interval_);
      if (Interrupted()) return kOk;
      absl::StatusOr<Sample> after = Look();
      if (!after.ok()) return Ended(after.status(), shown);
      Show(*before, *after, context.out);
      if (!context.out->status().ok()) return kFailed;
      before = std::move(after);
    }
    return kOk;
  }

 private:
  absl::StatusOr<int> List(Output* out) const {
    const std::vector<Answering> processes = AnsweringProcesses();
    if (processes.empty()) {
      return absl::NotFoundError(absl::StrCat(
          "no process ", geteuid() == 0 ? "" : "of this user's ",
          "with a connection over Penstock in this network namespace"));
    }
    out->Write(json_ ? ListJson(processes) : ListText(processes, *out));
    return kOk;
  }

  // Returns a line for each process, truncated to the width of a terminal.
  static std::string ListText(const std::vector<Answering>& processes,
                              const Output& out) {
    constexpr size_t kNumberColumns = 9;
    const size_t room = std::clamp(out.width(), 2 * kNumberColumns,
                                   kMaxNameBytes + kNumberColumns) -
                        kNumberColumns;
    std::string text;
    for (const Answering& each : processes) {
      absl::StrAppend(&text, absl::StrFormat("%7d  ", each.process),
                      base::Printable(each.command, room), "\n");
    }
    return text;
  }

  static std::string ListJson(const std::vector<Answering>& processes) {
    nlohmann::ordered_json all = {
        {"processes", nlohmann::ordered_json::array()}};
    for (const Answering& each : processes) {
      all["processes"].push_back(
          {{"pid", each.process},
           {"command", base::Printable(each.command, kMaxNameBytes)}});
    }
    return all.dump() + "\n";
  }

  absl::StatusOr<Sample> Look() const {
    if (process_ > 0) {
      absl::StatusOr<Sample> sample = SampleProcess(process_, kLimit);
      if (!absl::IsNotFound(sample.status())) return sample;
      if (kill(process_, 0) == 0 || errno != ESRCH) return sample;
      return absl::NotFoundError(
          absl::StrCat("there is no process ", process_));
    }
    const bool is_url = absl::StrContains(where_, "://");
    return SampleUrl(
        is_url ? where_ : absl::StrCat("http://", where_, "/metrics"), kLimit);
  }

  // Ends the command. If the process was shown before, its end is no error.
  absl::StatusOr<int> Ended(const absl::Status& status, int shown) const {
    if (process_ <= 0 || !absl::IsNotFound(status)) return status;
    const std::string text =
        absl::StrCat("process ", process_, " answers no more");
    if (shown == 0) return absl::NotFoundError(text);
    Complain("penstock top", text);
    return kOk;
  }

  void Show(const Sample& before, const Sample& after, Output* out) const {
    if (json_) return out->Write(ViewJson(before, after, absl::Now()));
    const std::string heading = absl::StrCat(
        process_ > 0 ? "process " : "", base::Printable(where_, kMaxNameBytes),
        ", ", absl::FormatTime("%H:%M:%S", absl::Now(), absl::LocalTimeZone()),
        "\n\n");
    const bool is_terminal = isatty(STDOUT_FILENO) == 1;
    out->Write(absl::StrCat(is_terminal ? kNewScreen : "", heading,
                            ViewText(before, after, *out),
                            is_terminal ? "" : "\n"));
  }

  std::string where_;
  pid_t process_ = 0;
  std::string interval_text_ = "1s";
  absl::Duration interval_;
  int count_ = 0;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeTop() { return std::make_unique<Top>(); }

}  // namespace penstock::cli
