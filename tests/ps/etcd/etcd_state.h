// The state of a fake etcd.

#ifndef PENSTOCK_TESTS_PS_ETCD_ETCD_STATE_H_
#define PENSTOCK_TESTS_PS_ETCD_ETCD_STATE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "third_party/etcd/rpc.pb.h"

namespace penstock::ps::etcd {

// The keys and leases of an etcd. May be copied: a copy is a backup.
struct EtcdState {
  uint64_t cluster_id = 7;
  int64_t revision = 1;
  int64_t compacted = 0;
  int64_t last_lease = 0;
  std::map<std::string, mvccpb::KeyValue> values;
  std::map<int64_t, int64_t> leases;  // time to live, by id
  std::vector<mvccpb::Event> events;  // after `compacted`

  // Adds the keys of a range to the answer.
  void Read(const etcdserverpb::RangeRequest& request,
            etcdserverpb::RangeResponse* reply) const;
  bool Holds(const etcdserverpb::Compare& compare) const;
  // Change a key at the present revision.
  void Put(const std::string& key, const std::string& value, int64_t lease);
  void Delete(const std::string& key);
  // Ends a lease, and deletes its keys at the next revision.
  void EndLease(int64_t id);
  // Adds the events of a watch from revision `next` on.
  void AddEvents(const etcdserverpb::WatchCreateRequest& create, int64_t next,
                 etcdserverpb::WatchResponse* response) const;
};

}  // namespace penstock::ps::etcd

#endif  // PENSTOCK_TESTS_PS_ETCD_ETCD_STATE_H_
