#include "ps/server/refusals.h"

#include "absl/strings/str_cat.h"
#include "transport/base/log.h"
#include "transport/base/printable.h"

namespace penstock::ps {

using Verdict = Coordinator::Verdict;

absl::Status Draining() {
  return absl::UnavailableError("the parameter server is shutting down");
}

absl::Status TooManyWait(size_t calls) {
  return absl::ResourceExhaustedError(absl::StrCat(
      calls, " calls wait at the parameter server already: try again later"));
}

absl::Status HasNoModel(uint64_t run) {
  if (run == 0) {
    return absl::FailedPreconditionError(
        "the parameter server has no model: worker 0 defines one");
  }
  return absl::DataLossError(absl::StrCat(
      "the parameter server was restarted and has lost run ", absl::Hex(run),
      ": attach again, which restores a checkpoint at all servers if they have "
      "--restore, or restart the workers"));
}

absl::Status OtherRun(uint64_t run, uint64_t ours) {
  return absl::AbortedError(absl::StrCat(
      "the parameter server is of run ", absl::Hex(ours), ", not of ",
      absl::Hex(run),
      ": this process belongs to a training that has ended, or continues "
      "from a checkpoint: attach again, or restart this process"));
}

absl::Status Refusal(Verdict verdict, const absl::optional<WorkerId>& worker,
                     absl::string_view call) {
  const std::string who =
      worker.has_value() ? absl::StrCat(call, " of worker ", worker->rank, ": ")
                         : absl::StrCat(call, " of a reader: ");
  switch (verdict) {
    case Verdict::kAccepted:
    case Verdict::kDuplicate:
    case Verdict::kLate:
      return absl::OkStatus();
    case Verdict::kAhead:
      return absl::FailedPreconditionError(absl::StrCat(
          who,
          "its clock is ahead of all that it can have pulled: pull first, from "
          "the clock on that Join() returns"));
    case Verdict::kNotMember:
      return absl::FailedPreconditionError(
          absl::StrCat(who,
                       "it is not a member; it never joined, has left, or "
                       "its lease is over"));
    case Verdict::kSuperseded:
      return absl::AbortedError(
          absl::StrCat(who, "the worker was restarted; this one must stop"));
    case Verdict::kReplaced:
      return absl::AbortedError(
          absl::StrCat(who, "a later push of the same worker has come"));
    case Verdict::kTimedOut:
      return absl::DeadlineExceededError(
          absl::StrCat(who, "it waited for too long"));
    case Verdict::kTooMany:
      return absl::ResourceExhaustedError(
          absl::StrCat(who, "too many such calls are waiting"));
    case Verdict::kInvalid:
      return absl::InvalidArgumentError(
          absl::StrCat(who, "its rank or clock is out of bounds"));
    case Verdict::kDraining:
      return Draining();
  }
  return absl::InternalError(absl::StrCat(who, "unknown verdict"));
}

void LogLines(const std::function<void(const std::string&)>& log,
              const std::vector<std::string>& lines) {
  for (const std::string& each : lines) {
    const std::string line = base::Printable(each, base::kMaxLogLineBytes);
    if (log) {
      log(line);
    } else {
      base::LogInfo("ps: " + line);
    }
  }
}

}  // namespace penstock::ps
