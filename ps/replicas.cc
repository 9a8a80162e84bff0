#include "ps/replicas.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "penstock/version.h"
#include "ps/replication/view_wire.h"

namespace penstock::ps {
namespace {

using replication::ReplicaId;

uint64_t RandomIncarnation() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

ShardOptions ShardOptionsOf(const ProcessReplicas::Options& options,
                            Peers* peers) {
  ShardOptions shards;
  shards.new_server = options.new_server;
  shards.peers = peers;
  shards.worker_lease = options.worker_lease;
  shards.assemble_timeout = options.assemble_timeout;
  shards.checkpoints = options.checkpoints;
  shards.claim = options.claim;
  shards.build = PENSTOCK_VERSION;
  shards.log = options.log;
  return shards;
}

MetricFamily Gauge(const char* name, const char* help, double value) {
  return {name, help, MetricFamily::Type::kGauge, {{{}, value}}};
}

}  // namespace

absl::StatusOr<int> FixedPort(absl::string_view listen) {
  const size_t colon = listen.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos ||
      !absl::SimpleAtoi(listen.substr(colon + 1), &port) || port <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--replicas needs a --listen with a port, such as 0.0.0.0:2222, to "
        "which this server returns after a restart; it is ",
        listen));
  }
  return port;
}

ProcessReplicas::ProcessReplicas(const Options& options, Server* own)
    : replicas_(options.replicas),
      peers_(PeersOver(options.connect)),
      shards_(ShardOptionsOf(options, peers_.get()),
              ReplicaId{options.address, RandomIncarnation()}, own) {}

v1::GetViewReply ProcessReplicas::View() const {
  const views::Known known = board_.Get();
  v1::GetViewReply reply;
  reply.set_replicas(replicas_);
  if (known.view) *reply.mutable_view() = replication::ToMessage(*known.view);
  reply.mutable_servers()->Assign(known.servers.begin(), known.servers.end());
  for (const size_t shard : known.lost) {
    reply.add_lost_shards(static_cast<uint32_t>(shard));
  }
  reply.set_etcd_failure(known.etcd_failure);
  return reply;
}

std::vector<MetricFamily> ProcessReplicas::Metrics() const {
  const views::Known known = board_.Get();
  const ReplicaId self = shards_.self();
  double led = 0;
  double missing = 0;
  for (size_t i = 0; known.view && i < known.view->shards.size(); ++i) {
    const replication::ShardReplicas& shard = known.view->shards[i];
    if (shard.primary != self) continue;
    ++led;
    missing += replicas_ - std::min<size_t>(replicas_, shard.backups.size());
  }
  return {
      Gauge("penstock_ps_view", "Number of the newest view; 0: none yet.",
            known.view ? static_cast<double>(known.view->number) : 0),
      Gauge("penstock_ps_shards_led", "Shards that this server leads.", led),
      Gauge("penstock_ps_backups_missing",
            "Backups that the shards of this server lack: dead, or still "
            "catching up.",
            missing),
      Gauge("penstock_ps_shards_lost",
            "Shards of the training whose replicas are all dead.",
            static_cast<double>(known.lost.size())),
  };
}

}  // namespace penstock::ps
