#include "ps/etcd/copy.h"

#include <algorithm>
#include <utility>

namespace penstock::ps::etcd {
namespace {

bool HaveSameRevisions(const Values& a, const Values& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [](const auto& one, const auto& other) {
                      return one.first == other.first &&
                             one.second.mod_revision() ==
                                 other.second.mod_revision();
                    });
}

}  // namespace

bool Copy::Read(const etcdserverpb::RangeResponse& reply) {
  Values read;
  for (const mvccpb::KeyValue& value : reply.kvs()) read[value.key()] = value;
  const bool is_changed = !HaveSameRevisions(values_, read);
  values_ = std::move(read);
  revision_ = reply.header().revision();
  wants_read_ = false;
  return is_changed;
}

bool Copy::Apply(const etcdserverpb::WatchResponse& response) {
  if (response.compact_revision() > 0) wants_read_ = true;
  bool is_changed = false;
  int64_t last = revision_;
  for (const mvccpb::Event& event : response.events()) {
    const int64_t revision = event.kv().mod_revision();
    if (revision <= revision_) continue;
    last = std::max(last, revision);
    is_changed = true;
    if (event.type() == mvccpb::Event::DELETE) {
      values_.erase(event.kv().key());
    } else {
      values_[event.kv().key()] = event.kv();
    }
  }
  if (response.events().empty() && !response.canceled()) {
    last = std::max(last, response.header().revision());
  }
  revision_ = last;
  return is_changed;
}

}  // namespace penstock::ps::etcd
