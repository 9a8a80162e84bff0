#include "cli/doctor/trial.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/base/steady_mutex.h"
#include "transport/base/token.h"
#include "transport/fabric/fabric.h"
#include "transport/paths/side_paths.h"
#include "transport/wire/hello.h"

namespace penstock::cli {
namespace {

using EndpointOr = absl::StatusOr<std::shared_ptr<fabric::Endpoint>>;

// Limits a trial. Longer than the fabric's own timeout for a peer.
constexpr absl::Duration kLimit = absl::Seconds(3);

// Waits until a connection of this process to itself exists on both sides.
// Thread-safe.
class BothEnds {
 public:
  void Add(EndpointOr end) {
    base::SteadyMutexLock lock(&mu_);
    if (!end.ok()) error_.Update(end.status());
    if (end.ok()) ends_.push_back(*std::move(end));
  }

  // Returns the first error, or OK once both sides exist.
  absl::Status Await(absl::Duration limit) {
    base::SteadyMutexLock lock(&mu_);
    const auto is_decided = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return !error_.ok() || ends_.size() == 2;
    };
    if (!mu_.AwaitFor(limit, is_decided)) {
      return absl::DeadlineExceededError(
          "this process did not reach itself in time");
    }
    return error_;
  }

 private:
  base::SteadyMutex mu_;
  absl::Status error_ ABSL_GUARDED_BY(mu_);
  std::vector<std::shared_ptr<fabric::Endpoint>> ends_ ABSL_GUARDED_BY(mu_);
};

absl::Status ConnectToSelf(const Settings& settings,
                           const wire::FabricOffer& offer) {
  const absl::StatusOr<std::string> token = base::NewToken();
  if (!token.ok()) return token.status();
  auto ends = std::make_shared<BothEnds>();
  const paths::SidePaths::Done done =
      [ends](const std::string&, EndpointOr end) { ends->Add(std::move(end)); };
  // Takes the same steps as both sides of a connection.
  paths::SidePaths server(settings, /*is_private=*/false, /*devices=*/nullptr);
  paths::SidePaths client(settings, /*is_private=*/false, /*devices=*/nullptr);
  server.Listen({offer}, *token, done);
  client.Connect(offer.fabric, offer.data, *token, done);
  return ends->Await(kLimit);
}

}  // namespace

Trials TryFabrics(const Settings& settings) {
  const paths::SidePaths side_paths(settings, /*is_private=*/false,
                                    /*devices=*/nullptr);
  Trials trials;
  for (const wire::FabricOffer& offer : side_paths.Offers()) {
    absl::Status& result = trials[offer.fabric];
    if (!offer.usable) {
      result = absl::UnavailableError(offer.data);
    } else if (offer.fabric == FabricName(Fabric::kShm)) {
      result = ConnectToSelf(settings, offer);
    }
  }
  return trials;
}

}  // namespace penstock::cli
