#include "ps/checkpoint/verify.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/checkpoint/names.h"
#include "ps/checkpoint/shard_reader.h"

namespace penstock::ps::checkpoint {
namespace {

class Verifier {
 public:
  Verifier(Files* files, const Progress& progress)
      : files_(files), progress_(progress) {}

  absl::StatusOr<Verification> Run(uint64_t step) {
    absl::StatusOr<Chain> chain = ReadManifests(files_, step);
    if (absl::IsNotFound(chain.status()) ||
        (!chain.ok() && !IsDamage(chain.status()))) {
      return chain.status();
    }
    if (!chain.ok()) {
      Report({step, "", 0, std::string(chain.status().message())});
      return std::move(result_);
    }
    for (const Link& link : chain->links) {
      for (const ShardInfo& info : link.manifest.shards) total_ += info.bytes;
    }
    for (Link& link : chain->links) {
      absl::Status status = CheckLink(&link);
      if (!status.ok()) return status;
    }
    return std::move(result_);
  }

 private:
  absl::Status CheckLink(Link* link) {
    ++result_.checkpoints;
    for (const ShardInfo& info : link->manifest.shards) {
      const uint64_t before = done_;
      absl::Status status = CheckShard(link, info);
      if (!status.ok()) return status;
      // Count the whole shard as done, including bytes outside the blocks and
      // unreadable bytes.
      done_ = before + info.bytes;
      if (!TellProgress()) return absl::CancelledError("verify: cancelled");
    }
    if (link->footers.size() < link->manifest.shards.size()) {
      return absl::OkStatus();  // reported
    }
    absl::Status status = CheckComplete(link->manifest, link->footers);
    if (!status.ok()) {
      Report({link->manifest.attempt.step, "", 0,
              absl::StrCat(StepFolder(link->manifest.attempt.step), ": ",
                           status.message())});
    }
    return absl::OkStatus();
  }

  absl::Status CheckShard(Link* link, const ShardInfo& info) {
    const Manifest& manifest = link->manifest;
    const auto shard =
        ShardReader::Open(files_, &manifest.model, manifest.attempt, info);
    if (!shard.ok()) {
      if (!IsDamage(shard.status())) return shard.status();
      Report({manifest.attempt.step, "", 0,
              std::string(shard.status().message())});
      return absl::OkStatus();
    }
    result_.bytes += info.bytes;
    for (const Part& part : (*shard)->footer().parts) {
      absl::Status status = CheckPart(manifest, shard->get(), part);
      if (!status.ok()) return status;
    }
    link->footers.push_back((*shard)->footer());
    return absl::OkStatus();
  }

  absl::Status CheckPart(const Manifest& manifest, ShardReader* shard,
                         const Part& part) {
    PartCursor cursor(shard, &part);
    // Adds a DATA_LOSS to the result. Returns any other error.
    const auto report = [&](const absl::Status& status, uint64_t block) {
      if (status.ok()) return absl::OkStatus();
      if (!IsDamage(status)) return status;
      Report({manifest.attempt.step, manifest.model.tables[part.table].name,
              block, std::string(status.message())});
      return absl::OkStatus();
    };
    while (!cursor.AtEnd()) {
      const auto header = cursor.Next();
      if (!header.ok()) return report(header.status(), cursor.block());
      ++result_.blocks;
      absl::Status status = report(cursor.Payload().status(), cursor.block());
      if (!status.ok()) return status;
      done_ += kBlockHeaderBytes + header->length;
      if (!TellProgress()) return absl::CancelledError("verify: cancelled");
    }
    return report(cursor.Finish(), 0);
  }

  void Report(Damage damage) {
    ++result_.damaged;
    if (result_.damages.size() < kMaxDamages) {
      result_.damages.push_back(std::move(damage));
    }
  }

  bool TellProgress() {
    return progress_ == nullptr || progress_(done_, total_);
  }

  Files* const files_;
  const Progress& progress_;
  Verification result_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
};

absl::Status CheckAll(Files* files, uint64_t step, const Progress& progress) {
  const absl::StatusOr<Verification> found = Verify(files, step, progress);
  if (!found.ok()) return found.status();
  if (found->damaged == 0) return absl::OkStatus();
  return absl::DataLossError(found->damages.front().what);
}

absl::Status Unreadable(uint64_t step, const absl::Status& status) {
  return absl::Status(
      status.code(),
      absl::StrCat(StepFolder(step),
                   " may be good, but cannot be read: ", status.message(),
                   "; try again, or begin with an older checkpoint by naming "
                   "its step"));
}

}  // namespace

bool IsDamage(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsNotFound(status) ||
         absl::IsInvalidArgument(status);
}

absl::StatusOr<Verification> Verify(Files* files, uint64_t step,
                                    const Progress& progress) {
  return Verifier(files, progress).Run(step);
}

absl::StatusOr<LastGood> FindLastGood(Files* files, Thoroughness thoroughness,
                                      const Progress& progress) {
  const auto steps = ListSteps(files);
  if (!steps.ok()) return steps.status();
  LastGood found;
  for (uint64_t step : *steps) {
    absl::StatusOr<Chain> chain = OpenChain(files, step);
    absl::Status status = chain.status();
    if (status.ok() && thoroughness == Thoroughness::kFull) {
      status = CheckAll(files, step, progress);
    }
    if (status.ok()) {
      found.chain = *std::move(chain);
      return found;
    }
    if (!IsDamage(status)) return Unreadable(step, status);
    found.skipped.push_back(std::move(status));
  }
  if (found.skipped.empty()) return absl::NotFoundError("no checkpoint");
  return absl::DataLossError(absl::StrCat(
      "all ", found.skipped.size(), " checkpoints are damaged; the newest: ",
      found.skipped.front().message()));
}

}  // namespace penstock::ps::checkpoint
