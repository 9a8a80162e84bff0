#include "cli/doctor.h"

#include <string>
#include <utility>

#include "cli/doctor/probes.h"
#include "cli/doctor_report.h"

namespace penstock::cli {
namespace {

class Doctor final : public Command {
 public:
  Manual manual() const override {
    return {
        "doctor",
        "what would carry a connection here, and what is in its way",
        "Looks at RDMA devices, memory, limits, namespaces, settings and the "
        "release of gRPC, and says what of it helps or hinders Penstock. "
        "Changes nothing.\n\n"
        "A line is \"ok\", a \"note\" (works, but slower or not everywhere) or "
        "a \"problem\" (does not do what is asked of it). What to do about it "
        "follows an arrow.",
        {{"penstock doctor", "looks at this machine"},
         {"penstock doctor --brief", "leaves out what is ok"},
         {"penstock doctor --json | jq '.findings[] | select(.level != "
          "\"ok\")'",
          "the same for a program"}},
        "no problem was found; there may be notes",
        "a problem was found"};
  }

  void Declare(CLI::App* app) override {
    app->add_flag("-b,--brief", brief_, "leave out what is ok");
    app->add_flag("--json", json_, "print one JSON object");
  }

  absl::StatusOr<int> Run(const Context& context) override {
    const Host host = ThisHost(context.environment);
    DoctorReport report;
    report.paths = JudgePaths(host);
    report.findings = ProbeAll(host);
    context.out->Write(json_ ? ReportJson(report)
                             : ReportText(report, *context.out, brief_));
    return report.Count(Level::kProblem) == 0 ? kOk : kFailed;
  }

 private:
  bool brief_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeDoctor() { return std::make_unique<Doctor>(); }

}  // namespace penstock::cli
