#include "tests/ps/etcd/etcd_state.h"

#include <algorithm>

namespace penstock::ps::etcd {
namespace {

using etcdserverpb::Compare;

bool IsIn(const std::string& key, const std::string& begin,
          const std::string& end) {
  return end.empty() ? key == begin : key >= begin && key < end;
}

}  // namespace

void EtcdState::Read(const etcdserverpb::RangeRequest& request,
                     etcdserverpb::RangeResponse* reply) const {
  for (const auto& [key, kv] : values) {
    if (IsIn(key, request.key(), request.range_end())) *reply->add_kvs() = kv;
  }
}

bool EtcdState::Holds(const Compare& compare) const {
  if (!compare.range_end().empty()) {
    return std::all_of(values.begin(), values.end(), [&](const auto& value) {
      return !IsIn(value.first, compare.key(), compare.range_end()) ||
             value.second.mod_revision() < compare.mod_revision();
    });
  }
  const auto found = values.find(compare.key());
  const mvccpb::KeyValue kv =
      found == values.end() ? mvccpb::KeyValue() : found->second;
  switch (compare.target()) {
    case Compare::CREATE:
      return kv.create_revision() == compare.create_revision();
    case Compare::MOD:
      return kv.mod_revision() == compare.mod_revision();
    case Compare::VALUE:
      return found != values.end() && kv.value() == compare.value();
    case Compare::LEASE:
      return kv.lease() == compare.lease();
    default:
      return false;
  }
}

void EtcdState::Put(const std::string& key, const std::string& value,
                    int64_t lease) {
  mvccpb::KeyValue& kv = values[key];
  if (kv.create_revision() == 0) kv.set_create_revision(revision);
  kv.set_key(key);
  kv.set_value(value);
  kv.set_lease(lease);
  kv.set_mod_revision(revision);
  kv.set_version(kv.version() + 1);
  mvccpb::Event event;
  *event.mutable_kv() = kv;
  events.push_back(event);
}

void EtcdState::Delete(const std::string& key) {
  if (values.erase(key) == 0) return;
  mvccpb::Event event;
  event.set_type(mvccpb::Event::DELETE);
  event.mutable_kv()->set_key(key);
  event.mutable_kv()->set_mod_revision(revision);
  events.push_back(event);
}

void EtcdState::EndLease(int64_t id) {
  leases.erase(id);
  std::vector<std::string> keys;
  for (const auto& [key, kv] : values) {
    if (kv.lease() == id) keys.push_back(key);
  }
  if (!keys.empty()) ++revision;
  for (const std::string& key : keys) Delete(key);
}

void EtcdState::AddEvents(const etcdserverpb::WatchCreateRequest& create,
                          int64_t next,
                          etcdserverpb::WatchResponse* response) const {
  for (const mvccpb::Event& event : events) {
    if (event.kv().mod_revision() >= next &&
        IsIn(event.kv().key(), create.key(), create.range_end())) {
      *response->add_events() = event;
    }
  }
}

}  // namespace penstock::ps::etcd
