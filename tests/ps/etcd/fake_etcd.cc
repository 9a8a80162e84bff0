#include "tests/ps/etcd/fake_etcd.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "tests/ps/etcd/fake_etcd_services.h"

namespace penstock::ps::etcd {

FakeEtcd::FakeEtcd(FakeEtcd* other)
    : shared_(other != nullptr ? other->shared_ : std::make_shared<Shared>()),
      services_(std::make_unique<Services>(shared_.get())) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port_);
  builder.RegisterService(
      static_cast<etcdserverpb::KV::Service*>(services_.get()));
  builder.RegisterService(
      static_cast<etcdserverpb::Lease::Service*>(services_.get()));
  builder.RegisterService(
      static_cast<etcdserverpb::Watch::Service*>(services_.get()));
  builder.RegisterService(
      static_cast<etcdserverpb::Auth::Service*>(services_.get()));
  server_ = builder.BuildAndStart();
}

FakeEtcd::~FakeEtcd() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

std::string FakeEtcd::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

Client::Options FakeEtcd::ClientOptions() const {
  Client::Options options;
  options.endpoints = {address()};
  options.patience = absl::Seconds(1);
  return options;
}

void FakeEtcd::SetAway(bool is_away) {
  absl::MutexLock lock(&shared_->mu);
  services_->is_away_ = is_away;
  services_->changed_.SignalAll();
}

void FakeEtcd::FailWith(grpc::StatusCode code) {
  absl::MutexLock lock(&shared_->mu);
  services_->failure_ = code;
}

void FakeEtcd::LoseNextAnswer() {
  absl::MutexLock lock(&shared_->mu);
  services_->loses_answer_ = true;
}

void FakeEtcd::DelayAnswersOfWrites(absl::Duration delay) {
  absl::MutexLock lock(&shared_->mu);
  services_->delay_of_writes_ = delay;
}

void FakeEtcd::HoldWritesOf(const std::string& key) {
  absl::MutexLock lock(&shared_->mu);
  services_->held_key_ = key;
  services_->changed_.SignalAll();
}

void FakeEtcd::AwaitHeldWrite() const {
  absl::MutexLock lock(&shared_->mu);
  while (services_->held_writes_ == 0) {
    services_->changed_.WaitWithTimeout(&shared_->mu, Services::kLookEvery);
  }
}

void FakeEtcd::HoldEvents() {
  absl::MutexLock lock(&shared_->mu);
  services_->holds_events_ = true;
}

void FakeEtcd::LieOfCluster(uint64_t cluster_id) {
  absl::MutexLock lock(&shared_->mu);
  services_->cluster_lie_ = cluster_id;
}

void FakeEtcd::LieOfRevision(int64_t revision) {
  absl::MutexLock lock(&shared_->mu);
  services_->revision_lie_ = revision;
}

void FakeEtcd::RequireUser(const std::string& name,
                           const std::string& password) {
  absl::MutexLock lock(&shared_->mu);
  services_->user_ = name;
  services_->password_ = password;
}

void FakeEtcd::ForgetTokens() {
  absl::MutexLock lock(&shared_->mu);
  services_->token_.clear();
}

EtcdState FakeEtcd::Save() const {
  absl::MutexLock lock(&shared_->mu);
  return shared_->state;
}

void FakeEtcd::Restore(const EtcdState& state) {
  absl::MutexLock lock(&shared_->mu);
  shared_->state = state;
  ++services_->generation_;
  services_->changed_.SignalAll();
}

void FakeEtcd::Put(const std::string& key, const std::string& value) {
  absl::MutexLock lock(&shared_->mu);
  ++shared_->state.revision;
  shared_->state.Put(key, value, /*lease=*/0);
  services_->changed_.SignalAll();
}

void FakeEtcd::Delete(const std::string& key) {
  absl::MutexLock lock(&shared_->mu);
  ++shared_->state.revision;
  shared_->state.Delete(key);
  services_->changed_.SignalAll();
}

void FakeEtcd::ExpireLeases() {
  absl::MutexLock lock(&shared_->mu);
  while (!shared_->state.leases.empty()) {
    services_->EndLease(shared_->state.leases.begin()->first);
  }
}

void FakeEtcd::CompactAndEndStreams() {
  absl::MutexLock lock(&shared_->mu);
  shared_->state.compacted = shared_->state.revision;
  shared_->state.events.clear();
  ++services_->generation_;
  services_->changed_.SignalAll();
}

void FakeEtcd::EndStreams() {
  absl::MutexLock lock(&shared_->mu);
  ++services_->generation_;
  services_->changed_.SignalAll();
}

int FakeEtcd::reads() const {
  absl::MutexLock lock(&shared_->mu);
  return services_->reads_;
}

void FakeEtcd::AwaitRefusedCall() const {
  absl::MutexLock lock(&shared_->mu);
  while (services_->refused_ == 0) {
    services_->changed_.WaitWithTimeout(&shared_->mu, Services::kLookEvery);
  }
}

void FakeEtcd::AwaitWatches(int count) const {
  absl::MutexLock lock(&shared_->mu);
  while (services_->watches_ < count) {
    services_->changed_.WaitWithTimeout(&shared_->mu, Services::kLookEvery);
  }
}

}  // namespace penstock::ps::etcd
