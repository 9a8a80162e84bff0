#include "ps/client/periodic_checkpoints.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/bytes_text.h"

namespace penstock::ps {

PeriodicCheckpoints::PeriodicCheckpoints(Options options)
    : options_(std::move(options)),
      calls_(options_.interval, [this] { TakeOne(); }) {}

absl::StatusOr<CheckpointResult> PeriodicCheckpoints::TryOne(
    TrainingConnection::Channels channels) const {
  TrainingConnection::Options to;
  to.servers = std::move(channels);
  to.wait_for_values = false;
  to.timeout = options_.reach;
  to.connect = options_.connect;
  const auto connection = TrainingConnection::Open(to);
  if (!connection.ok()) return connection.status();
  CheckpointOptions checkpoint = options_.checkpoint;
  checkpoint.tells_server = false;
  return TakeCheckpoint(**connection, checkpoint);
}

TrainingConnection::Channels PeriodicCheckpoints::ChannelsTo(
    const std::vector<std::string>& servers) {
  const auto former = std::exchange(channels_, {});
  TrainingConnection::Channels channels;
  for (const std::string& server : servers) {
    const auto found = former.find(server);
    channels.push_back(found != former.end() ? found->second
                                             : options_.connect(server));
    channels_[server] = channels.back();
  }
  return channels;
}

void PeriodicCheckpoints::TakeOne() {
  const TrainingConnection::Channels channels = ChannelsTo(options_.servers());
  if (channels.empty()) return;
  const auto taken = TryOne(channels);
  if (absl::IsAlreadyExists(taken.status())) return;
  if (!taken.ok()) return options_.failed(taken.status());
  if (taken->is_joined) return;
  options_.log(absl::StrCat("checkpoint of step ", taken->step, ": ",
                            base::BytesText(taken->bytes), "; the folder has ",
                            taken->checkpoints, " with ",
                            base::BytesText(taken->checkpoints_bytes)));
}

}  // namespace penstock::ps
