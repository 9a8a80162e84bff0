#include "tests/ps/failover/timeline.h"

#include "ps/membership/keys.h"
#include "ps/membership/membership.pb.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

etcd::Client::Options At(const std::string& address) {
  etcd::Client::Options options;
  options.endpoints = {address};
  return options;
}

}  // namespace

Timeline::Timeline(const std::string& etcd, const std::string& prefix)
    : prefix_(prefix + "/"), client_(At(etcd)), mirror_(&client_, prefix_) {}

absl::Time Timeline::AwaitGone(const std::string& key, absl::Duration timeout) {
  const bool is_gone = mirror_.Await(
      [&](const etcd::Values& values) {
        return values.count(prefix_ + key) == 0;
      },
      base::SteadyNow() + timeout);
  return is_gone ? base::SteadyNow() : absl::InfiniteFuture();
}

absl::Time Timeline::AwaitViewAfter(uint64_t view, absl::Duration timeout) {
  const bool is_there = mirror_.Await(
      [&](const etcd::Values& values) {
        const auto found = values.find(prefix_ + membership::kView);
        membership::v1::View now;
        return found != values.end() &&
               now.ParseFromString(found->second.value()) &&
               now.number() > view;
      },
      base::SteadyNow() + timeout);
  return is_there ? base::SteadyNow() : absl::InfiniteFuture();
}

}  // namespace penstock::ps
