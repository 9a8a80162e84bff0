// A local copy of the keys under a prefix, built from etcd's answers and
// events.

#ifndef PENSTOCK_PS_ETCD_COPY_H_
#define PENSTOCK_PS_ETCD_COPY_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "third_party/etcd/rpc.pb.h"

namespace penstock::ps::etcd {

using Values = std::map<std::string, mvccpb::KeyValue>;

// A copy of a prefix's keys at one revision. No I/O. Not thread-safe.
//
// | Event               | The copy                                            |
// |---------------------|-----------------------------------------------------|
// | an answer to a read | becomes the answer                                  |
// | events              | gets the changes that are newer than the copy       |
// | progress            | has the revision of the header, since nothing of    |
// |                     | the prefix changed up to then                       |
// | the watch was       | is kept, and wants a read: the events up to now are |
// | compacted           | lost                                                |
class Copy {
 public:
  // True if a read must come before the next watch.
  bool wants_read() const { return wants_read_; }
  // Returns the first revision that the copy lacks. A watch begins there.
  int64_t next_revision() const { return revision_ + 1; }
  const Values& values() const { return values_; }

  // Stores the answer to a read of the whole prefix. Returns true if a value
  // changed.
  bool Read(const etcdserverpb::RangeResponse& reply);
  // Applies a message of a watch, other than the first one. Returns true if a
  // value changed. Ignores events that the copy already contains.
  bool Apply(const etcdserverpb::WatchResponse& response);
  // Requests a read before the next watch.
  void WantRead() { wants_read_ = true; }

 private:
  bool wants_read_ = true;
  int64_t revision_ = 0;
  Values values_;
};

}  // namespace penstock::ps::etcd

#endif  // PENSTOCK_PS_ETCD_COPY_H_
