#include "tests/ps/simulation/servers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace penstock::ps {
namespace {

std::vector<float> FloatsIn(const tensor::Tensor& tensor) {
  const auto flat = tensor.flat<float>();
  if (!flat.ok()) return {};
  return {flat->begin(), flat->end()};
}

std::string SparseName(size_t policy) { return absl::StrCat("r", policy); }
std::string DenseName(size_t policy) { return absl::StrCat("d", policy); }

}  // namespace

bool Servers::all_up() const {
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [](const auto& node) { return node != nullptr; });
}

bool Servers::all_proper() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [&](const auto& node) {
    return node != nullptr && node->options().restores &&
           node->options().folder == main_;
  });
}

void Servers::Start(size_t server, const How& how) {
  Node::Options options;
  options.id = ++started_;
  options.folder = how.has_other_folder ? other_ : main_;
  options.restores = how.restores;
  options.workers = workers_;
  options.max_held_bytes = max_held_bytes_;
  nodes_[server] = std::make_unique<Node>(options, mail_);
}

void Servers::Kill(size_t server) {
  if (nodes_[server] == nullptr) return;
  ++deaths_;
  nodes_[server] = nullptr;
}

void Servers::BuryDead() {
  for (size_t server = 0; server < size(); ++server) {
    if (nodes_[server] != nullptr && nodes_[server]->is_dying()) Kill(server);
  }
}

void Servers::Spare() {
  for (const auto& node : nodes_) {
    if (node != nullptr) node->DieAfter(-1);
  }
}

void Servers::KillAll(size_t servers) {
  for (size_t server = 0; server < size(); ++server) Kill(server);
  nodes_.resize(servers);
}

void Servers::LosePower(unsigned seed) {
  absl::MutexLock lock(&main_->mu);
  main_->files.Restart(checkpoint::Loss::kSome, seed);
}

void Servers::LoseFolder() { main_ = std::make_shared<Folder>(); }

absl::StatusOr<checkpoint::Manifest> Servers::ManifestOf(const CutId& cut) {
  for (const auto& folder : {main_, other_}) {
    absl::MutexLock lock(&folder->mu);
    auto manifest = checkpoint::ReadManifest(&folder->files, cut.step);
    if (manifest.ok() && manifest->attempt.id == cut.id) return manifest;
  }
  return absl::NotFoundError("no folder has this cut");
}

bool Servers::IsInMainFolder(size_t server) const {
  return nodes_[server] != nullptr && nodes_[server]->options().folder == main_;
}

absl::optional<Life> Servers::CommonLife() const {
  Life life;
  for (size_t server = 0; server < size(); ++server) {
    if (nodes_[server] == nullptr) return absl::nullopt;
    const auto training = nodes_[server]->core().training();
    if (training == nullptr) return absl::nullopt;
    const auto cut = nodes_[server]->core().restored();
    if (server == 0) {
      life.run = training->run;
      life.cut = cut;
      for (size_t policy = 0; policy < policies_; ++policy) {
        life.owners.push_back(training->tables->placement()
                                  .Find(DenseName(policy))
                                  ->ranges[0]
                                  .server);
      }
    }
    if (training->run != life.run || cut != life.cut) return absl::nullopt;
    life.nodes.push_back(nodes_[server]->options().id);
  }
  return life;
}

std::string Servers::Describe() const {
  std::string text;
  for (size_t server = 0; server < size(); ++server) {
    absl::StrAppend(&text, " [", server, ": ");
    if (nodes_[server] == nullptr) {
      absl::StrAppend(&text, "dead]");
      continue;
    }
    const auto training = nodes_[server]->core().training();
    const auto& options = nodes_[server]->options();
    absl::StrAppend(&text, "process ", options.id,
                    options.restores ? "" : ", no --restore",
                    options.folder == main_ ? "" : ", other folder", ", run ",
                    absl::Hex(training == nullptr ? 0 : training->run), ", ",
                    TextOf(nodes_[server]->core().restored()), "]");
  }
  return text;
}

absl::optional<Values> Servers::Read(
    const std::map<uint64_t, Push>& pushes) const {
  Values values;
  values.dense.resize(policies_);
  values.rows.resize(policies_);
  for (size_t server = 0; server < size(); ++server) {
    if (!ReadServer(server, pushes, &values)) return absl::nullopt;
  }
  return values;
}

bool Servers::ReadServer(size_t server, const std::map<uint64_t, Push>& pushes,
                         Values* values) const {
  if (nodes_[server] == nullptr || !nodes_[server]->core().has_values()) {
    return false;
  }
  Tables& tables = *nodes_[server]->core().training()->tables;
  tensor::Bundle wanted;
  std::vector<std::vector<uint64_t>> ids(policies_);
  for (size_t policy = 0; policy < policies_; ++policy) {
    const PlacedTable& placed = *tables.placement().Find(SparseName(policy));
    for (const auto& [number, push] : pushes) {
      for (const uint64_t id : push.rows[policy]) {
        if (placed.ServerOfId(id) == server) ids[policy].push_back(id);
      }
    }
    const std::vector<int64_t> list(ids[policy].begin(), ids[policy].end());
    wanted.tensors.push_back(
        {SparseName(policy), *tensor::Tensor::Of<int64_t>(
                                 {static_cast<int64_t>(list.size())}, list)});
  }
  const auto selection = tables.Select(wanted, {}, /*all_parts=*/true);
  if (!selection.ok()) return false;
  const auto read = tables.Read(*selection, absl::Now());
  if (!read.ok()) return false;
  const size_t parts = selection->parts.size();
  for (size_t at = 0; at < parts; ++at) {
    const Part& part = tables.parts()[selection->parts[at]];
    const std::vector<float> elements = FloatsIn(read->tensors[at].tensor);
    for (const Part::Piece& piece : part.pieces) {
      const LocalRange& range = tables.model().ranges()[piece.range];
      const std::string& name = tables.model().table(range.table).name;
      for (size_t policy = 0; policy < policies_; ++policy) {
        if (name != DenseName(policy)) continue;
        const auto first =
            elements.begin() + static_cast<ptrdiff_t>(piece.first);
        values->dense[policy].assign(
            first, first + static_cast<ptrdiff_t>(piece.elements));
      }
    }
  }
  for (size_t policy = 0; policy < policies_; ++policy) {
    const std::vector<float> rows =
        FloatsIn(read->tensors[parts + policy].tensor);
    for (size_t at = 0; at < rows.size(); ++at) {
      values->rows[policy][ids[policy][at]] = rows[at];
    }
  }
  return true;
}

std::vector<std::string> Servers::CheckMemory() const {
  std::vector<std::string> wrong;
  for (size_t server = 0; server < size(); ++server) {
    if (nodes_[server] == nullptr) continue;
    const size_t held = nodes_[server]->core().report().held_bytes;
    if (held <= max_held_bytes_) continue;
    wrong.push_back(absl::StrCat("server ", server, " holds ", held,
                                 " bytes of gradients, of ", max_held_bytes_));
  }
  return wrong;
}

}  // namespace penstock::ps
