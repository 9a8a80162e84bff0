#include "transport/grpc/held_write.h"

#include "absl/time/time.h"
#include "transport/base/steady_time.h"
#include "transport/progress/ask_until_done.h"

namespace penstock {
namespace core {

std::shared_ptr<HeldWrite> HeldWrite::Start(Write write) {
  // The time of the first kEnd. AskUntilDone() pauses for an eighth of the time
  // since its beginning, so the pauses take 100 us at most.
  const absl::Time end = base::SteadyNow() + absl::Microseconds(800);
  auto held = std::make_shared<HeldWrite>(std::move(write));
  const absl::Status asked = progress::AskUntilDone([held, end] {
    return !held->write_(base::SteadyNow() < end ? Moment::kTime
                                                 : Moment::kEnd);
  });
  return asked.ok() ? held : nullptr;
}

}  // namespace core
}  // namespace penstock
