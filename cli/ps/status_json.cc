#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/ps/status_view.h"
#include "nlohmann/json.hpp"

namespace penstock::cli {
namespace {

using json = nlohmann::ordered_json;

json TableJson(const ps::v1::TableReport& table) {
  json all = {
      {"name", table.name()},  {"type", table.sparse() ? "sparse" : "dense"},
      {"new", table.is_new()}, {"steps", table.steps()},
      {"rows", table.rows()},  {"bytes", table.bytes()}};
  if (!table.sparse()) return all;
  all["limit_bytes"] = table.budget_bytes();
  all["hits"] = table.hits();
  all["misses"] = table.misses();
  all["evicted_rows"] = table.evicted_rows();
  all["not_admitted"] = table.not_admitted();
  all["refused_pushes"] = table.refused_pushes();
  all["dropped_gradients"] = table.dropped_gradients();
  all["spilled_rows"] = table.spilled_rows();
  return all;
}

json ReportJson(const ps::v1::ServerReport& report) {
  // Text, because programs that read JSON may round 64-bit numbers.
  json all = {{"run", absl::StrFormat("%016x", report.run())},
              {"epoch", report.epoch()},
              {"server", report.server()},
              {"servers", report.servers()},
              {"has_model", report.run() != 0},
              {"has_values", report.has_values()},
              {"version", report.version()},
              {"live_workers", report.live_workers()},
              {"expected_workers", report.expected_workers()},
              {"workers_lost", report.workers_lost()},
              {"pushes_counted", report.pushes_counted()},
              {"pushes_not_counted", report.pushes_not_counted()},
              {"pushes_refused", report.pushes_refused()},
              {"held_bytes", report.held_bytes()},
              {"held_limit_bytes", report.held_bytes_limit()},
              {"restored_step", report.restored_step()},
              {"last_checkpoint_step", report.last_checkpoint_step()},
              {"last_checkpoint_age_us", report.last_checkpoint_age_us()},
              {"checkpoints", report.checkpoints()},
              {"checkpoints_bytes", report.checkpoints_bytes()},
              {"aside_checkpoints", report.aside_checkpoints()},
              {"aside_checkpoints_bytes", report.aside_checkpoints_bytes()},
              {"checkpoint_failures", report.checkpoint_failures()},
              {"checkpoint_failures_since", report.checkpoint_failures_since()},
              {"checkpoint_failure", report.checkpoint_failure()},
              {"checkpoint_written_bytes", report.checkpoint_written_bytes()},
              {"checkpoint_total_bytes", report.checkpoint_total_bytes()},
              {"failure", report.failure()},
              {"workers", json::array()},
              {"tables", json::array()}};
  for (const ps::v1::WorkerReport& worker : report.workers()) {
    all["workers"].push_back({{"rank", worker.rank()},
                              {"clock", worker.clock()},
                              {"is_member", worker.is_member()},
                              {"behind", worker.behind()}});
  }
  for (const ps::v1::TableReport& table : report.tables()) {
    all["tables"].push_back(TableJson(table));
  }
  return all;
}

json NamesOf(
    const google::protobuf::RepeatedPtrField<ps::v1::Replica>& replicas) {
  json names = json::array();
  for (const ps::v1::Replica& each : replicas) names.push_back(each.server());
  return names;
}

json ViewJson(const ps::v1::GetViewReply& newest) {
  json all = {{"number", newest.view().number()},
              {"replicas", newest.replicas()},
              {"lost_shards", newest.lost_shards()},
              {"shards", json::array()}};
  for (const ps::v1::ShardReplicas& shard : newest.view().shards()) {
    all["shards"].push_back({{"primary", shard.primary().server()},
                             {"backups", NamesOf(shard.backups())},
                             {"joiners", NamesOf(shard.joiners())}});
  }
  return all;
}

}  // namespace

std::string StatusJson(const std::vector<ServerStatus>& servers) {
  json all = {{"problems", AllProblems(servers)}, {"servers", json::array()}};
  for (const ServerStatus& each : servers) {
    json server = {{"name", each.name}, {"answers", each.status.ok()}};
    if (each.status.ok()) {
      server.update(ReportJson(each.report));
    } else {
      server["error"] = std::string(each.status.message());
    }
    all["servers"].push_back(std::move(server));
  }
  const ps::v1::GetViewReply* const newest = NewestView(servers);
  if (newest != nullptr) all["view"] = ViewJson(*newest);
  return absl::StrCat(
      all.dump(2, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace),
      "\n");
}

}  // namespace penstock::cli
