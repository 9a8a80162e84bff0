#include "ps/client/periodic_checkpoints.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "transport/base/bytes_text.h"

namespace penstock::ps {

PeriodicCheckpoints::PeriodicCheckpoints(Options options)
    : options_(std::move(options)),
      calls_(options_.interval, [this] { TakeOne(); }) {}

void PeriodicCheckpoints::TakeOne() const {
  TrainingConnection::Options to;
  to.servers = options_.channels();
  if (to.servers.empty()) return;
  to.wait_for_values = false;
  to.timeout = options_.reach;
  to.connect = options_.connect;
  const auto connection = TrainingConnection::Open(to);
  if (!connection.ok()) {
    if (options_.failed) options_.failed(connection.status());
    return Report(connection.status());
  }
  const auto taken = TakeCheckpoint(**connection, options_.checkpoint);
  if (absl::IsAlreadyExists(taken.status())) return;
  if (!taken.ok()) return Report(taken.status());
  if (taken->is_joined) return;
  options_.log(absl::StrCat("checkpoint of step ", taken->step, ": ",
                            base::BytesText(taken->bytes), "; the folder has ",
                            taken->checkpoints, " with ",
                            base::BytesText(taken->checkpoints_bytes)));
}

void PeriodicCheckpoints::Report(const absl::Status& status) const {
  options_.log(absl::StrCat(
      "no checkpoint: ", absl::StripPrefix(status.message(), "checkpoint: ")));
}

}  // namespace penstock::ps
