#include "ps/client/reader.h"

#include <utility>
#include <vector>

#include "ps/client/awaited.h"
#include "ps/client/random_id.h"

namespace penstock::ps {

Reader::Reader(std::shared_ptr<const TrainingConnection> connection)
    : connection_(std::move(connection)), hash_(RandomId()) {}

void Reader::StartPull(uint64_t step, const PullSpec& spec,
                       absl::Duration timeout,
                       std::function<void(absl::StatusOr<Pulled>)> done) {
  const Puller puller{connection_, &loop_, absl::nullopt, hash_, nullptr};
  absl::Status status = PullCall::Start(
      puller, std::vector<uint64_t>(connection_->servers(), step), spec,
      timeout, [done](absl::StatusOr<Pulled> pulled, const PullAnswers&) {
        done(std::move(pulled));
      });
  if (status.ok()) return;
  loop_.Post([done = std::move(done), status] { done(status); });
}

absl::StatusOr<Pulled> Reader::Pull(uint64_t step, const PullSpec& spec,
                                    absl::Duration timeout) {
  if (loop_.IsInCallback()) {
    return absl::FailedPreconditionError(
        "a pull that blocks, in a callback of the reader: it would wait for "
        "itself; start it instead");
  }
  Awaited<absl::StatusOr<Pulled>> answer(&loop_);
  StartPull(step, spec, timeout, answer.Callback());
  return answer.Wait();
}

}  // namespace penstock::ps
