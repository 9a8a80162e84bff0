#include "python/rpc/monitor.h"

#include "transport/base/steady_time.h"

namespace penstock::python {

void SleepOn(std::condition_variable_any* changed, base::Mutex* mu,
             absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) return changed->wait(*mu);
  changed->wait_for(*mu,
                    absl::ToChronoNanoseconds(deadline - base::SteadyNow()));
}

}  // namespace penstock::python
