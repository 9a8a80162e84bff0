#include "tests/ps/shards/cluster.h"

#include <chrono>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "ps/wire/shard_key.h"
#include "tensor_service/status.h"
#include "tests/ps/server/small_server.h"

namespace penstock::ps {
namespace {

using replication::ReplicaId;
using replication::ShardReplicas;

// The durations of leases. Even a loaded machine renews these in time.
constexpr replication::LeaseTimes kLease = {absl::Milliseconds(600),
                                            absl::Milliseconds(50)};
constexpr absl::Duration kPatience = absl::Seconds(60);

Server::Options OwnOptions(const Node::Options& node) {
  Server::Options options;
  options.membership.expected_workers = node.workers;
  options.max_held_bytes = node.max_held_bytes;
  options.tables.hash_seed = 1;
  options.log = [](const std::string&) {};
  return ForReplica(options);
}

ShardOptions OptionsOf(const Node::Options& node, CheckpointWriter* claim,
                       Peers* peers) {
  ShardOptions options;
  options.new_server = [node] {
    return std::make_unique<Server>(OwnOptions(node));
  };
  options.peers = peers;
  options.checkpoints = node.checkpoints;
  options.claim = claim;
  options.lease = kLease;
  options.worker_lease = kPatience;
  options.build = "test";
  options.log = [](const std::string&) {};
  return options;
}

// Returns true if the call may succeed at another server, or later.
bool IsPassing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         absl::IsCancelled(status);
}

absl::StatusOr<std::shared_ptr<Calls>> CallsOf(
    const std::shared_ptr<Node>& node, uint32_t shard) {
  if (node == nullptr) return absl::UnavailableError("there is no primary");
  return node->shards().CallsOf(shard);
}

}  // namespace

void Addresses::Set(const std::string& name,
                    std::shared_ptr<grpc::Channel> channel) {
  absl::MutexLock lock(&mu_);
  channels_[name] = std::move(channel);
}

void Addresses::Remove(const std::string& name) {
  absl::MutexLock lock(&mu_);
  channels_.erase(name);
}

std::shared_ptr<grpc::Channel> Addresses::Find(const std::string& name) const {
  absl::MutexLock lock(&mu_);
  const auto found = channels_.find(name);
  return found == channels_.end() ? nullptr : found->second;
}

void CutPeers::Replicate(const std::string& server,
                         const grpc::ByteBuffer& request,
                         absl::Duration timeout, Callback callback) {
  if (is_cut_) return callback(absl::UnavailableError("the cable is cut"));
  peers_->Replicate(server, request, timeout, std::move(callback));
}

Node::Node(const std::string& name, uint64_t incarnation,
           const Options& node_options, Addresses* addresses)
    : id_{absl::StrCat(name, "-", incarnation), incarnation},
      addresses_(addresses),
      own_(OwnOptions(node_options)) {
  if (node_options.checkpoints != nullptr) {
    claim_ = std::make_unique<CheckpointWriter>(node_options.checkpoints, &own_,
                                                CheckpointWriter::Options());
  }
  peers_ = std::make_unique<CutPeers>(
      PeersOver([addresses](const std::string& server) {
        auto channel = addresses->Find(server);
        return channel != nullptr
                   ? channel
                   : grpc::CreateChannel("127.0.0.1:1",
                                         grpc::InsecureChannelCredentials());
      }));
  shards_ = std::make_unique<Shards>(
      OptionsOf(node_options, claim_.get(), peers_.get()), id_, &own_);
  ServiceOptions options;
  options.checkpoints = claim_.get();
  options.shards = shards_.get();
  service_ = MakeService(&own_, options);
  grpc::ServerBuilder builder;
  tensor::AllowUnlimitedMessages(&builder);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(service_.get());
  server_ = builder.BuildAndStart();
  channel_ = grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port),
                                       grpc::InsecureChannelCredentials(),
                                       tensor::UnlimitedMessages());
  addresses_->Set(id_.server, channel_);
}

Node::~Node() {
  peers_->Cut(true);
  addresses_->Remove(id_.server);
  shards_->Stop();
  own_.Drain();
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

Cluster::Cluster(const Options& options, Model model) : options_(options) {
  std::vector<ReplicaId> first;
  Server::Definition definition;
  definition.model = std::move(model);
  definition.run = kRun;
  for (size_t i = 0; i < options.shards; ++i) {
    definition.servers.push_back(absl::StrCat("ps", i, ":2222"));
  }
  for (size_t i = 0; i < options.servers; ++i) {
    const auto node = Add(absl::StrCat("ps", i));
    first.push_back(node->id());
    if (i >= options.shards) continue;
    definition.server = static_cast<uint32_t>(i);
    EXPECT_TRUE(node->own().Define(definition).ok());
    tensor::Bundle zeros;
    for (const Part& part : node->own().training()->tables->parts()) {
      auto value = tensor::Tensor::Allocate(part.dtype, part.shape);
      auto values = *value->mutable_flat<float>();
      absl::c_fill(values, 0.0f);
      zeros.tensors.push_back({part.name, *value});
    }
    if (zeros.tensors.empty()) continue;
    EXPECT_TRUE(node->own().Initialize(kView, {0, 1}, zeros).ok());
  }
  {
    absl::MutexLock lock(&mu_);
    view_.run = kRun;
    view_.number = 1;
    for (size_t i = 0; i < options.shards; ++i) {
      ShardReplicas shard;
      shard.primary = first[i];
      view_.shards.push_back(shard);
    }
  }
  keeper_ = std::thread([this] { KeepLoop(); });
}

Cluster::~Cluster() {
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
  }
  keeper_.join();
  std::map<std::string, std::shared_ptr<Node>> nodes;
  absl::MutexLock lock(&mu_);
  nodes.swap(nodes_);
}

std::shared_ptr<Node> Cluster::Add(const std::string& name) {
  Node::Options options;
  options.workers = options_.workers;
  options.max_held_bytes = options_.max_held_bytes;
  options.checkpoints = options_.checkpoints;
  auto node =
      std::make_shared<Node>(name, next_incarnation_++, options, &addresses_);
  absl::MutexLock lock(&mu_);
  nodes_[node->id().server] = node;
  return node;
}

std::vector<std::shared_ptr<Node>> Cluster::nodes() const {
  absl::MutexLock lock(&mu_);
  std::vector<std::shared_ptr<Node>> nodes;
  for (const auto& [name, node] : nodes_) {
    if (isolated_.count(name) == 0) nodes.push_back(node);
  }
  return nodes;
}

void Cluster::KeepLoop() {
  while (true) {
    KeepOnce();
    absl::MutexLock lock(&mu_);
    if (mu_.AwaitWithTimeout(absl::Condition(&stop_), absl::Milliseconds(20))) {
      return;
    }
  }
}

void Cluster::Next(absl::StatusOr<replication::View> next) {
  if (next.ok() && replication::CheckSuccessor(view_, *next).ok()) {
    view_ = *next;
  }
}

void Cluster::KeepOnce() {
  for (const auto& node : nodes()) {
    const replication::View now = view();
    node->shards().OnView(now).IgnoreError();
    for (const auto& request : node->shards().Requests()) {
      absl::MutexLock lock(&mu_);
      if (request.view != view_.number) continue;
      if (isolated_.count(node->id().server) > 0) continue;
      if (!request.complete.empty()) {
        Next(WithBackup(view_, request.shard, request.complete.front()));
      } else if (!request.overdue.empty()) {
        Next(WithoutReplica(view_, request.overdue.front().replica));
      }
    }
  }
  absl::MutexLock lock(&mu_);
  for (size_t shard = 0; shard < view_.shards.size(); ++shard) {
    const ShardReplicas& each = view_.shards[shard];
    if (each.backups.size() + each.joiners.size() >= options_.backups) continue;
    for (const auto& [name, node] : nodes_) {
      if (isolated_.count(name) > 0) continue;
      const uint64_t before = view_.number;
      Next(WithJoiner(view_, shard, node->id()));
      if (view_.number != before) break;
    }
  }
}

std::shared_ptr<Node> Cluster::TakePrimary(uint32_t shard) {
  absl::MutexLock lock(&mu_);
  if (view_.shards[shard].backups.empty()) return nullptr;
  const std::string name = view_.shards[shard].primary.server;
  isolated_.insert(name);  // ignores its requests for views
  std::shared_ptr<Node> node = std::move(nodes_[name]);
  nodes_.erase(name);
  return node;
}

void Cluster::KillPrimary(uint32_t shard) {
  std::shared_ptr<Node> node = TakePrimary(shard);
  while (node == nullptr) {
    AwaitBackups();
    node = TakePrimary(shard);
  }
  const ReplicaId id = node->id();
  std::weak_ptr<Node> gone = node;
  node = nullptr;
  while (!gone.expired()) absl::SleepFor(absl::Milliseconds(1));
  {
    absl::MutexLock lock(&mu_);
    Next(WithoutReplica(view_, id));
  }
  Add(id.server.substr(0, id.server.find('-')));
}

void Cluster::Isolate(const std::string& name, bool is_isolated) {
  absl::MutexLock lock(&mu_);
  if (is_isolated) {
    isolated_.insert(name);  // ignores its requests for views
  } else {
    isolated_.erase(name);
  }
}

void Cluster::GiveUp(const std::string& name) {
  absl::MutexLock lock(&mu_);
  Next(WithoutReplica(view_, nodes_[name]->id()));
}

void Cluster::AwaitBackups() {
  const absl::Time deadline = absl::Now() + kPatience;
  const auto has_all = [this](const ShardReplicas& it) {
    return it.backups.size() >= options_.backups;
  };
  while (absl::Now() < deadline) {
    if (absl::c_all_of(view().shards, has_all)) return;
    absl::SleepFor(absl::Milliseconds(5));
  }
  ADD_FAILURE() << "no backup is complete";
}

replication::View Cluster::view() const {
  absl::MutexLock lock(&mu_);
  return view_;
}

std::shared_ptr<Node> Cluster::node(const std::string& name) const {
  absl::MutexLock lock(&mu_);
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : found->second;
}

std::shared_ptr<Node> Cluster::PrimaryOf(uint32_t shard) const {
  return node(view().shards[shard].primary.server);
}

absl::StatusOr<uint64_t> Cluster::Join(uint32_t shard, const WorkerId& worker) {
  const absl::Time deadline = absl::Now() + kPatience;
  absl::Status last;
  while (absl::Now() < deadline) {
    Answer<Exchange::Joined> answer;
    {
      const auto node = PrimaryOf(shard);
      const auto calls = CallsOf(node, shard);
      last = calls.status();
      if (calls.ok()) {
        (*calls)->StartJoin(kView, worker, answer.callback());
      }
    }
    if (last.ok()) {
      const auto joined = answer.Wait();
      if (joined.ok()) return joined->clock;
      last = joined.status();
    }
    if (!IsPassing(last)) return last;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return last;
}

absl::StatusOr<Exchange::PushVerdict> Cluster::Push(
    uint32_t shard, const WorkerId& worker, uint64_t clock,
    const tensor::Bundle& bundle) {
  const absl::Time deadline = absl::Now() + kPatience;
  absl::Status last;
  while (absl::Now() < deadline) {
    Answer<Exchange::PushVerdict> answer;
    {
      const auto node = PrimaryOf(shard);
      const auto calls = CallsOf(node, shard);
      last = calls.status();
      if (calls.ok()) {
        (*calls)->Push(kView, worker, clock, bundle, answer.callback(), true);
      }
    }
    if (last.ok()) {
      const auto verdict = answer.Wait();
      if (verdict.ok()) return verdict;
      last = verdict.status();
    }
    if (!IsPassing(last)) return last;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return last;
}

absl::StatusOr<Exchange::Pulled> Cluster::Pull(uint32_t shard,
                                               absl::optional<WorkerId> worker,
                                               uint64_t clock,
                                               tensor::Bundle ids) {
  Exchange::PullSpec spec;
  spec.worker = worker;
  spec.clock = clock;
  spec.all_parts = true;
  spec.ids = std::move(ids);
  const absl::Time deadline = absl::Now() + kPatience;
  absl::Status last;
  while (absl::Now() < deadline) {
    Answer<Exchange::Pulled> answer;
    {
      const auto node = PrimaryOf(shard);
      const auto calls = CallsOf(node, shard);
      last = calls.status();
      if (calls.ok()) (*calls)->Pull(kView, spec, answer.callback());
    }
    if (last.ok()) {
      const auto pulled = answer.Wait();
      if (pulled.ok()) return pulled;
      last = pulled.status();
    }
    if (!IsPassing(last)) return last;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return last;
}

}  // namespace penstock::ps
