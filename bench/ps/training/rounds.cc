#include "bench/ps/training/rounds.h"

#include "absl/strings/str_cat.h"
#include "bench/ps/training/roles.h"
#include "bench/rpc/setup/child_process.h"

namespace penstock::bench {

void GiveUp(const absl::Status& status) {
  SendLine(absl::StrCat(kErrorPrefix, status.ToString()));
  LeaveChild(1);
}

void ServeRounds(const std::function<absl::StatusOr<Figures>()>& round) {
  SendLine("ready");
  for (;;) {
    if (!AwaitGo()) continue;
    const absl::StatusOr<Figures> figures = round();
    if (!figures.ok()) GiveUp(figures.status());
    SendLine(ToLine(*figures));
  }
}

}  // namespace penstock::bench
