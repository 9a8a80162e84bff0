// Reads and writes the keys of one training in etcd.

#ifndef PENSTOCK_PS_MEMBERSHIP_REGISTRY_H_
#define PENSTOCK_PS_MEMBERSHIP_REGISTRY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/etcd/cancel.h"
#include "ps/etcd/client.h"

namespace penstock::ps::membership {

// The keys of one training. Open() reads the identity of the training. Each
// call checks, in its own transaction, that etcd still has this identity. An
// etcd that was wiped, or restored from an earlier backup, has no identity or
// another one. Such an etcd is not changed: calls return DATA_LOSS with the
// remedy.
//
// All errors of etcd::Client pass through. Blocking and thread-safe.
class Registry {
 public:
  // The timeout of a call. An unreachable endpoint uses up a part of the
  // timeout.
  static constexpr absl::Duration kTimeout = absl::Seconds(5);

  // Reads the identity under `prefix`, or writes a new identity if there is
  // none. `client` must outlive the registry.
  static absl::StatusOr<std::unique_ptr<Registry>> Open(
      etcd::Client* client, const std::string& prefix,
      absl::Duration timeout = kTimeout, etcd::Cancel* cancel = nullptr);

  // A value, and its position in etcd's history.
  struct Value {
    std::string bytes;
    int64_t revision = 0;  // of the last write
    int64_t lease = 0;     // 0: none
  };
  // Returns the value of a key of ps/membership/keys.h, or nullopt if the key
  // is absent.
  absl::StatusOr<absl::optional<Value>> Read(const std::string& key,
                                             etcd::Cancel* cancel = nullptr,
                                             absl::Duration timeout = kTimeout);

  // Conditions of a write.
  struct Guard {
    // A key, and the lease that the key must have.
    std::string key;
    int64_t lease = 0;
    // Unless empty: requires that no key beginning with this text was written
    // after the revision `seen`.
    std::string unwritten;
    int64_t seen = 0;
  };
  struct Written {
    bool is_done = false;
    // The current value, if the write was refused.
    absl::optional<Value> found;
  };
  // Writes a key if its last write has the revision `revision`. 0 means that
  // the key must be absent. Returns ABORTED if the conditions of `guard` do not
  // hold.
  //
  // The write may be sent twice if its answer was lost. `found` is then the
  // result of the first write: compare `found` with `bytes`.
  absl::StatusOr<Written> Write(
      const std::string& key, const std::string& bytes, int64_t revision,
      int64_t lease = 0, const absl::optional<Guard>& guard = absl::nullopt,
      etcd::Cancel* cancel = nullptr);

  etcd::Client* client() const { return client_; }
  // Returns the prefix with its slash.
  const std::string& prefix() const { return prefix_; }

 private:
  Registry(etcd::Client* client, std::string prefix, std::string identity);
  // Returns the error DATA_LOSS, for a transaction that found another identity.
  absl::Status IdentityLost() const;

  etcd::Client* const client_;
  const std::string prefix_;
  const std::string identity_;
};

}  // namespace penstock::ps::membership

#endif  // PENSTOCK_PS_MEMBERSHIP_REGISTRY_H_
