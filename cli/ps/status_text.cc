#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/ps/status_view.h"
#include "cli/top/figures.h"
#include "cli/top/table.h"
#include "transport/base/printable.h"

namespace penstock::cli {
namespace {

constexpr size_t kMaxWorkers = 20;
constexpr size_t kMaxNewTables = 20;
constexpr size_t kMaxTables = 50;
constexpr int kNameColumns = 26;

std::string Heading(const Output& out, absl::string_view text) {
  return absl::StrCat(out.Styled(Style::kBold, text), "\n");
}

double Number(uint64_t value) { return static_cast<double>(value); }

std::string StateOf(const ServerStatus& server) {
  if (!server.status.ok()) return "no answer";
  const ps::v1::ServerReport& report = server.report;
  if (report.run() == 0) return "no model";
  if (!report.failure().empty()) return "has ended";
  return report.has_values() ? "serves" : "no values";
}

std::string ServerRow(const ServerStatus& server, const Table& table) {
  const std::string name = base::Printable(server.name, kNameColumns);
  const std::string state = StateOf(server);
  const ps::v1::ServerReport& report = server.report;
  if (report.run() == 0) {
    return table.Row({name, state, "-", "-", "-", "-", "-", "-", "-", "-"});
  }
  return table.Row(
      {name, state, absl::StrCat(report.version()),
       absl::StrCat(report.live_workers(), "/", report.expected_workers()),
       Count(Number(report.workers_lost())),
       Count(Number(report.pushes_counted())),
       Count(Number(report.pushes_not_counted())),
       Count(Number(report.pushes_refused())),
       absl::StrCat(Bytes(Number(report.held_bytes())), " of ",
                    Bytes(Number(report.held_bytes_limit()))),
       report.last_checkpoint_step() == 0
           ? "-"
           : absl::StrCat(report.last_checkpoint_step())});
}

// Returns lines about checkpoints that only the operator removes, or "".
std::string AsideText(const std::vector<ServerStatus>& servers,
                      size_t columns) {
  uint64_t folders = 0;
  uint64_t bytes = 0;
  for (const ServerStatus& each : servers) {
    folders += each.report.aside_checkpoints();
    bytes += each.report.aside_checkpoints_bytes();
  }
  if (folders == 0) return "";
  const std::string text = absl::StrCat(
      "A restore has set ", folders,
      folders == 1 ? " checkpoint" : " checkpoints", " aside, with ",
      Bytes(Number(bytes)), ". When nobody needs them, in --checkpoints=DIR:");
  return absl::StrCat(Wrapped(text, 0, columns), "\n  rm -r DIR/aside-*\n");
}

std::string Servers(const std::vector<ServerStatus>& servers,
                    const Output& out) {
  const Table table({{"server", -kNameColumns},
                     {"state", -9},
                     {"version", 9},
                     {"workers", 8},
                     {"lost", 5, 2},
                     {"pushes", 7, 3},
                     {"late", 6, 4},
                     {"refused", 7, 1},
                     {"gradients held", 20, 5},
                     {"checkpoint", 10, 6}},
                    out.width());
  std::string text = table.Header();
  for (const ServerStatus& each : servers) text += ServerRow(each, table);
  return text + table.LeftOut() + AsideText(servers, out.columns());
}

// A worker, according to all servers.
struct Worker {
  uint32_t rank = 0;
  uint64_t clock = 0;   // the lowest
  uint64_t behind = 0;  // the highest
  int member_of = 0;    // number of servers
};

std::vector<Worker> SlowestWorkers(const std::vector<ServerStatus>& servers) {
  std::map<uint32_t, Worker> by_rank;
  for (const ServerStatus& server : servers) {
    for (const ps::v1::WorkerReport& each : server.report.workers()) {
      const auto [found, is_new] = by_rank.emplace(each.rank(), Worker());
      Worker& worker = found->second;
      worker.rank = each.rank();
      worker.clock =
          is_new ? each.clock() : std::min(worker.clock, each.clock());
      worker.behind = std::max(worker.behind, each.behind());
      if (each.is_member()) ++worker.member_of;
    }
  }
  std::vector<Worker> workers;
  workers.reserve(by_rank.size());
  for (const auto& [rank, worker] : by_rank) workers.push_back(worker);
  std::stable_sort(workers.begin(), workers.end(),
                   [](const Worker& left, const Worker& right) {
                     return left.behind > right.behind;
                   });
  return workers;
}

// Returns a note on a worker that is not a member at all answering servers.
std::string NoteOn(const Worker& worker,
                   const std::vector<ServerStatus>& servers) {
  const auto answering =
      std::count_if(servers.begin(), servers.end(),
                    [](const auto& server) { return server.status.ok(); });
  if (worker.member_of == 0) return "left, or lost";
  if (worker.member_of == answering) return "";
  return absl::StrCat("member at ", worker.member_of, " of ", answering);
}

std::string Workers(const std::vector<ServerStatus>& servers) {
  const std::vector<Worker> workers = SlowestWorkers(servers);
  if (workers.empty()) return "none\n";
  std::string text =
      absl::StrFormat("%6s %9s %8s\n", "worker", "step", "behind");
  for (size_t i = 0; i < std::min(workers.size(), kMaxWorkers); ++i) {
    const Worker& each = workers[i];
    const std::string note = NoteOn(each, servers);
    absl::StrAppend(
        &text,
        absl::StrFormat("%6d %9d %8d", each.rank, each.clock, each.behind),
        note.empty() ? "" : "  ", note, "\n");
  }
  if (workers.size() > kMaxWorkers) {
    absl::StrAppend(&text, "and ", workers.size() - kMaxWorkers,
                    " that are behind by less\n");
  }
  return text;
}

// A table, summed over all servers.
struct TableSum {
  std::string name;
  bool is_sparse = false;
  bool is_new = false;  // created since the restore
  uint64_t steps = 0;   // the highest
  double rows = 0;
  double spilled = 0;  // rows on disk
  double bytes = 0;
  double hits = 0;
  double asked = 0;
  double evicted = 0;
};

std::vector<TableSum> LargestTables(const std::vector<ServerStatus>& servers) {
  std::map<std::string, TableSum> by_name;
  for (const ServerStatus& server : servers) {
    for (const ps::v1::TableReport& each : server.report.tables()) {
      TableSum& sum = by_name[each.name()];
      sum.name = each.name();
      sum.is_sparse = each.sparse();
      sum.is_new |= each.is_new();
      sum.steps = std::max<uint64_t>(sum.steps, each.steps());
      sum.rows += Number(each.rows());
      sum.spilled += Number(each.spilled_rows());
      sum.bytes += Number(each.bytes());
      sum.hits += Number(each.hits());
      sum.asked += Number(each.hits()) + Number(each.misses());
      sum.evicted += Number(each.evicted_rows());
    }
  }
  std::vector<TableSum> tables;
  tables.reserve(by_name.size());
  for (auto& [name, sum] : by_name) tables.push_back(std::move(sum));
  std::stable_sort(tables.begin(), tables.end(),
                   [](const TableSum& left, const TableSum& right) {
                     return left.bytes > right.bytes;
                   });
  return tables;
}

std::vector<std::string> CellsOf(const TableSum& table, bool has_spilled) {
  std::vector<std::string> cells = {
      base::Printable(table.name, kNameColumns),
      table.is_sparse ? "sparse" : "dense",
      Count(Number(table.steps)),
      Count(table.rows),
      Bytes(table.bytes),
      Percent(table.hits, table.asked),
      table.is_sparse ? Count(table.evicted) : "-"};
  if (has_spilled) {
    cells.push_back(table.is_sparse ? Percent(table.spilled, table.rows) : "-");
  }
  return cells;
}

// Returns the tables that were not restored from the checkpoint, or "".
std::string NewTables(const std::vector<TableSum>& tables) {
  std::vector<std::string> names;
  for (const TableSum& table : tables) {
    if (!table.is_new) continue;
    if (names.size() == kMaxNewTables) {
      names.push_back("...");
      break;
    }
    names.push_back(base::Printable(table.name, kNameColumns));
  }
  if (names.empty()) return "";
  return absl::StrCat(
      "start with initial values, because the checkpoint does not have them: ",
      absl::StrJoin(names, ", "), "\n");
}

std::string Tables(const std::vector<ServerStatus>& servers,
                   const Output& out) {
  const std::vector<TableSum> tables = LargestTables(servers);
  if (tables.empty()) return "none\n";
  std::vector<Column> columns = {
      {"table", -kNameColumns}, {"type", -6, 2}, {"steps", 8},
      {"rows", 8, 1},           {"bytes", 10},   {"hits", 5, 3},
      {"evicted", 8, 4}};
  // Shows the column only if it is used, because 80 columns have no room for an
  // unused one.
  const bool has_spilled =
      std::any_of(tables.begin(), tables.end(),
                  [](const TableSum& each) { return each.spilled > 0; });
  if (has_spilled) columns.push_back({"on disk", 7, 1});
  const Table table(std::move(columns), out.width());
  std::string text = table.Header();
  for (size_t i = 0; i < std::min(tables.size(), kMaxTables); ++i) {
    text += table.Row(CellsOf(tables[i], has_spilled));
  }
  if (tables.size() > kMaxTables) {
    absl::StrAppend(&text, "and ", tables.size() - kMaxTables,
                    " smaller ones\n");
  }
  return text + table.LeftOut() + NewTables(tables);
}

std::string NamesOf(
    const google::protobuf::RepeatedPtrField<ps::v1::Replica>& replicas) {
  if (replicas.empty()) return "-";
  return absl::StrJoin(
      replicas, " ", [](std::string* out, const ps::v1::Replica& replica) {
        out->append(base::Printable(replica.server(), kNameColumns));
      });
}

// Returns the section about replicas, or "".
std::string Shards(const std::vector<ServerStatus>& servers,
                   const Output& out) {
  const ps::v1::GetViewReply* const newest = NewestView(servers);
  if (newest == nullptr) return "";
  const Table table({{"shard", 6},
                     {"primary", -kNameColumns},
                     {"backups", -kNameColumns},
                     {"catching up", -kNameColumns, 1}},
                    out.width());
  std::string text = table.Header();
  const auto& shards = newest->view().shards();
  for (int i = 0; i < shards.size(); ++i) {
    text +=
        table.Row({absl::StrCat(i),
                   base::Printable(shards[i].primary().server(), kNameColumns),
                   NamesOf(shards[i].backups()), NamesOf(shards[i].joiners())});
  }
  return absl::StrCat(
      Heading(out, absl::StrCat("Replicas, view ", newest->view().number())),
      text, table.LeftOut(), "\n");
}

}  // namespace

std::string StatusText(const std::vector<ServerStatus>& servers,
                       const Output& out) {
  std::string text = absl::StrCat(
      Heading(out, "Servers"), Servers(servers, out), "\n",
      Shards(servers, out), Heading(out, "Workers"), Workers(servers), "\n",
      Heading(out, "Tables, on these servers together"), Tables(servers, out),
      "\n", Heading(out, "What is wrong"));
  const std::vector<std::string> problems = AllProblems(servers);
  for (const std::string& each : problems) {
    absl::StrAppend(&text, Wrapped(each, 0, out.columns()), "\n");
  }
  return text + (problems.empty() ? "nothing\n" : "");
}

}  // namespace penstock::cli
