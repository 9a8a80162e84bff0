#include "ps/checkpoint/retention.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "ps/checkpoint/manifest.h"
#include "ps/checkpoint/names.h"
#include "ps/checkpoint/verify.h"

namespace penstock::ps::checkpoint {
namespace {

uint64_t BaseOf(const Chain& chain) {
  return chain.links.back().manifest.attempt.step;
}

uint64_t BytesIn(Files* files, const std::string& folder) {
  const auto entries = files->List(folder);
  if (!entries.ok()) return 0;
  uint64_t bytes = 0;
  for (const FolderEntry& entry : *entries) {
    if (entry.type != FolderEntry::Type::kFile) continue;
    const auto file = files->Open(absl::StrCat(folder, "/", entry.name));
    if (file.ok()) bytes += (*file)->size();
  }
  return bytes;
}

}  // namespace

void AddSteps(const Chain& chain, std::set<uint64_t>* steps) {
  for (const Link& link : chain.links) {
    steps->insert(link.manifest.attempt.step);
  }
}

absl::StatusOr<std::vector<uint64_t>> ListOld(
    Files* files, const std::vector<uint64_t>& steps, size_t keep,
    std::set<uint64_t> needed) {
  size_t good = 0;
  bool is_incremental = false;
  std::set<uint64_t> bases;
  std::vector<uint64_t> old;
  for (const uint64_t step : steps) {
    const bool wants_more = good < std::max<size_t>(keep, 1);
    const bool wants_base = is_incremental && bases.size() == 1;
    if (wants_more || (wants_base && needed.count(step) == 0)) {
      const absl::StatusOr<Chain> chain = OpenChain(files, step);
      if (wants_more && IsDamage(chain.status())) continue;
      if (!chain.ok() && !IsDamage(chain.status())) return chain.status();
      if (chain.ok() && (wants_more || bases.count(BaseOf(*chain)) == 0)) {
        ++good;
        is_incremental |= chain->links.size() > 1;
        bases.insert(BaseOf(*chain));
        AddSteps(*chain, &needed);
      }
    }
    if (!wants_more && needed.count(step) == 0) old.push_back(step);
  }
  return old;
}

absl::StatusOr<Held> SizeOf(Files* files) {
  const auto steps = ListSteps(files);
  if (!steps.ok()) return steps.status();
  Held held;
  for (const uint64_t step : *steps) {
    const auto manifest = ReadManifest(files, step);
    if (!manifest.ok()) continue;
    ++held.checkpoints;
    for (const ShardInfo& shard : manifest->shards) held.bytes += shard.bytes;
  }
  const auto entries = files->List("");
  if (!entries.ok()) return entries.status();
  for (const FolderEntry& entry : *entries) {
    if (!IsAsideFolder(entry.name)) continue;
    ++held.aside;
    held.aside_bytes += BytesIn(files, entry.name);
  }
  return held;
}

}  // namespace penstock::ps::checkpoint
