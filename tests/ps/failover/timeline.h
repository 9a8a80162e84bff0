// The time line of a failover, as etcd shows it.

#ifndef PENSTOCK_TESTS_PS_FAILOVER_TIMELINE_H_
#define PENSTOCK_TESTS_PS_FAILOVER_TIMELINE_H_

#include <string>

#include "absl/time/time.h"
#include "ps/etcd/client.h"
#include "ps/etcd/mirror.h"

namespace penstock::ps {

// Watches the keys of a training while a server dies. Make this object before
// the death.
class Timeline {
 public:
  // `etcd` is the address of etcd, and `prefix` that of the training.
  Timeline(const std::string& etcd, const std::string& prefix);

  // Returns the time, by base::SteadyNow(), at which etcd has no key `key` any
  // more, or InfiniteFuture after `timeout`.
  absl::Time AwaitGone(const std::string& key, absl::Duration timeout);
  // Returns the time at which etcd has a view after number `view`, or
  // InfiniteFuture after `timeout`.
  absl::Time AwaitViewAfter(uint64_t view, absl::Duration timeout);

 private:
  const std::string prefix_;
  etcd::Client client_;
  etcd::Mirror mirror_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_FAILOVER_TIMELINE_H_
