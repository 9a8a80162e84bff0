#include "ps/membership/registry.h"

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/membership/keys.h"
#include "third_party/etcd/rpc.pb.h"

namespace penstock::ps::membership {
namespace {

using etcdserverpb::Compare;
using etcdserverpb::TxnRequest;
using etcdserverpb::TxnResponse;

std::string RandomIdentity() {
  std::random_device device;
  std::string identity;
  for (int i = 0; i < 4; ++i) {
    absl::StrAppend(&identity, absl::Hex(device(), absl::kZeroPad8));
  }
  return identity;
}

void AddGet(const std::string& key,
            google::protobuf::RepeatedPtrField<etcdserverpb::RequestOp>* ops) {
  ops->Add()->mutable_request_range()->set_key(key);
}

void AddPut(const std::string& key, const std::string& value, int64_t lease,
            google::protobuf::RepeatedPtrField<etcdserverpb::RequestOp>* ops) {
  etcdserverpb::PutRequest* const put = ops->Add()->mutable_request_put();
  put->set_key(key);
  put->set_value(value);
  put->set_lease(lease);
}

Compare* AddCompare(const std::string& key, Compare::CompareTarget target,
                    TxnRequest* request) {
  Compare* const compare = request->add_compare();
  compare->set_key(key);
  compare->set_result(Compare::EQUAL);
  compare->set_target(target);
  return compare;
}

void AddGuard(const std::string& prefix, const Registry::Guard& guard,
              TxnRequest* request) {
  AddCompare(prefix + guard.key, Compare::LEASE, request)
      ->set_lease(guard.lease);
  AddGet(prefix + guard.key, request->mutable_failure());
  if (guard.unwritten.empty()) return;
  const std::string range = prefix + guard.unwritten;
  Compare* const older = AddCompare(range, Compare::MOD, request);
  older->set_range_end(etcd::EndOfPrefix(range));
  older->set_result(Compare::LESS);
  older->set_mod_revision(guard.seen + 1);
}

// Returns the value that the read at `index` of a transaction found.
absl::optional<mvccpb::KeyValue> Found(const TxnResponse& reply, int index) {
  if (index >= reply.responses_size() ||
      reply.responses(index).response_range().kvs().empty()) {
    return absl::nullopt;
  }
  return reply.responses(index).response_range().kvs(0);
}

absl::optional<Registry::Value> AsValue(
    const absl::optional<mvccpb::KeyValue>& found) {
  if (!found) return absl::nullopt;
  return Registry::Value{found->value(), found->mod_revision(), found->lease()};
}

}  // namespace

Registry::Registry(etcd::Client* client, std::string prefix,
                   std::string identity)
    : client_(client),
      prefix_(std::move(prefix)),
      identity_(std::move(identity)) {}

absl::StatusOr<std::unique_ptr<Registry>> Registry::Open(
    etcd::Client* client, const std::string& prefix, absl::Duration timeout,
    etcd::Cancel* cancel) {
  absl::Status status = CheckPrefix(prefix);
  if (!status.ok()) return status;
  const std::string with_slash = absl::StrCat(prefix, "/");
  const std::string key = with_slash + kIdentity;
  const std::string mine = RandomIdentity();
  TxnRequest request;
  AddCompare(key, Compare::CREATE, &request)->set_create_revision(0);
  AddPut(key, mine, /*lease=*/0, request.mutable_success());
  AddGet(key, request.mutable_failure());
  const auto reply = client->Txn(request, timeout, cancel);
  if (!reply.ok()) return reply.status();
  std::string identity = mine;
  if (!reply->succeeded()) {
    const auto found = Found(*reply, 0);
    if (!found || found->value().empty()) {
      return absl::DataLossError(absl::StrCat("etcd contradicts itself: ", key,
                                              " is neither absent nor there"));
    }
    identity = found->value();
  }
  return std::unique_ptr<Registry>(
      new Registry(client, with_slash, std::move(identity)));
}

absl::Status Registry::IdentityLost() const {
  return absl::DataLossError(absl::StrCat(
      "etcd at ", client_->names(), ": ", prefix_, kIdentity,
      " is gone or another one: etcd was wiped, or restored from a backup, or "
      "the prefix was deleted. Restart all servers and workers"));
}

absl::StatusOr<absl::optional<Registry::Value>> Registry::Read(
    const std::string& key, etcd::Cancel* cancel, absl::Duration timeout) {
  TxnRequest request;
  AddCompare(prefix_ + kIdentity, Compare::VALUE, &request)
      ->set_value(identity_);
  AddGet(prefix_ + key, request.mutable_success());
  const auto reply = client_->Txn(request, timeout, cancel);
  if (!reply.ok()) return reply.status();
  if (!reply->succeeded()) return IdentityLost();
  return AsValue(Found(*reply, 0));
}

absl::StatusOr<Registry::Written> Registry::Write(
    const std::string& key, const std::string& bytes, int64_t revision,
    int64_t lease, const absl::optional<Guard>& guard, etcd::Cancel* cancel) {
  TxnRequest request;
  AddCompare(prefix_ + kIdentity, Compare::VALUE, &request)
      ->set_value(identity_);
  AddCompare(prefix_ + key, Compare::MOD, &request)->set_mod_revision(revision);
  AddGet(prefix_ + kIdentity, request.mutable_failure());
  AddGet(prefix_ + key, request.mutable_failure());
  if (guard) AddGuard(prefix_, *guard, &request);
  AddPut(prefix_ + key, bytes, lease, request.mutable_success());
  const auto reply = client_->Txn(request, kTimeout, cancel);
  if (!reply.ok()) return reply.status();
  if (reply->succeeded()) return Written{true, absl::nullopt};
  const auto identity = Found(*reply, 0);
  if (!identity || identity->value() != identity_) return IdentityLost();
  const auto guarding = Found(*reply, 2);
  if (guard && (!guarding || guarding->lease() != guard->lease)) {
    return absl::AbortedError(absl::StrCat(
        prefix_, guard->key,
        " no longer has the lease of this write, which has "
        "ended: this process may have registered again, or another "
        "one has taken over. Read it and decide again"));
  }
  absl::optional<Value> found = AsValue(Found(*reply, 1));
  if (guard && (found ? found->revision : 0) == revision) {
    return absl::AbortedError(absl::StrCat(
        prefix_, guard->unwritten,
        " in etcd was written meanwhile. Read it and decide again"));
  }
  return Written{false, std::move(found)};
}

}  // namespace penstock::ps::membership
