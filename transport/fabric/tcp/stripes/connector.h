// The client's side of the set-up of stripes.

#ifndef PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_CONNECTOR_H_
#define PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_CONNECTOR_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/tcp/stripes/address.h"
#include "transport/fabric/timed_setup.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace stripes {

// Opens all stripes to one address, greets on each, and waits for the answers.
class Connector : public TimedSetup {
 public:
  Connector(progress::EventLoop* loop, std::shared_ptr<Attempt> attempt,
            const Address& address, int count, absl::Duration limit);

 private:
  struct Opening {
    base::UniqueFd socket;
    bool greeted = false;
    std::string answer;                 // the bytes received so far
    progress::EventLoop::Id watch = 0;  // 0 once the answer is complete
  };

  void BeginOnLoop() override;
  void ReleaseOnLoop() override;
  absl::Status Open(size_t index);
  void OnEvent(size_t index);
  absl::Status Greet(size_t index);
  absl::Status TakeAnswer(Opening* opening);

  const Address address_;
  std::vector<Opening> openings_;  // by index
  size_t answered_ = 0;
};

}  // namespace stripes
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_CONNECTOR_H_
