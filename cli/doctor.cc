#include "cli/doctor.h"

#include <string>
#include <utility>

#include "cli/doctor/probes.h"
#include "cli/doctor_report.h"
#include "cli/histogram.h"
#include "cli/interrupt.h"
#include "cli/prober.h"
#include "cli/self.h"
#include "cli/target.h"
#include "preload/launch.h"

namespace penstock::cli {
namespace {

// The number of trial calls, enough for a median. They take a few milliseconds
// in total.
constexpr int kCalls = 20;

class Doctor final : public Command {
 public:
  Manual manual() const override {
    return {"doctor",
            "shows the possible paths of a connection, and obstacles",
            "Examines RDMA devices, memory, limits, namespaces, settings and "
            "the release of gRPC, and reports whether they help or hinder "
            "Penstock. With a TARGET, which may be any gRPC server, also "
            "connects, and reports the path and the reason for not using a "
            "better one. Changes nothing.\n\nA line is \"ok\", a \"note\" "
            "(works, but is slower or limited) or a \"problem\" (does not work "
            "as requested). A remedy follows an arrow.",
            {{"penstock doctor", "examines this machine"},
             {"penstock doctor ps0:50051",
              "also tries a connection to that server"},
             {"penstock doctor --brief", "omits lines that are ok"},
             {"penstock doctor --json | jq '.findings[] | select(.level != "
              "\"ok\")'",
              "prints the problems and notes for a program"}},
            "no problem was found; there may be notes",
            "a problem was found, or TARGET did not answer"};
  }

  void Declare(CLI::App* app) override {
    target_.Declare(app, /*is_required=*/false);
    app->add_flag("-b,--brief", brief_, "omit lines that are ok");
    app->add_flag("--json", json_, "print one JSON object");
  }

  absl::Status Check() override { return target_.Check(); }

  absl::StatusOr<int> Run(const Context& context) override {
    WatchInterrupts();
    Host host = ThisHost(context.environment);
    const auto preload = preload::FindLibraries(OwnFile());
    if (preload.ok()) {
      host.preload_folder = preload->stub.substr(0, preload->stub.rfind('/'));
    }
    DoctorReport report;
    report.paths = JudgePaths(host);
    report.findings = ProbeAll(host);
    if (!target_.Name().empty()) {
      auto connected = Connect();
      if (!connected.ok()) return connected.status();
      report.target = *std::move(connected);
    }
    if (Interrupted()) return absl::CancelledError("interrupted");
    context.out->Write(json_ ? ReportJson(report)
                             : ReportText(report, *context.out, brief_));
    return report.Problems() == 0 ? kOk : kFailed;
  }

 private:
  // Returns the result of the connection. Returns an error only if the target
  // cannot be tried.
  absl::StatusOr<TargetReport> Connect() const {
    TargetReport report;
    report.target = target_.Name();
    const auto channel = target_.Open();
    if (!channel.ok()) return channel.status();
    Prober prober(*channel, target_.timeout());
    const grpc::Status found = prober.Find();
    if (!found.ok()) {
      report.detail = target_.Explain(found);
      return report;
    }
    const PathReport path = target_.Path(channel->get());
    report.path = path.path;
    report.detail = path.detail;
    report.reason = path.reason;
    report.calls = prober.Describe();
    Histogram times;
    absl::Duration took;
    for (int i = 0; i < kCalls && !Interrupted(); ++i) {
      if (prober.Ping(0, &took).ok()) times.Add(took);
    }
    report.round_trip = times.Quantile(0.5);
    return report;
  }

  Target target_;
  bool brief_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeDoctor() { return std::make_unique<Doctor>(); }

}  // namespace penstock::cli
