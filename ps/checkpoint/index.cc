#include "ps/checkpoint/index.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "ps/checkpoint/chain.h"
#include "ps/checkpoint/names.h"
#include "tensor_service/checksum.h"

namespace penstock::ps::checkpoint {
namespace {

constexpr char kFirstLine[] = "penstock checkpoints 1";

std::string LastLine(absl::string_view before) {
  return absl::StrFormat("end %016x", tensor::ChecksumOf(before));
}

absl::Status Damaged() {
  return absl::DataLossError(
      absl::StrCat("the file ", kIndexName,
                   " is damaged: remove it if no checkpoint is missing"));
}

absl::StatusOr<std::vector<uint64_t>> ReadIndex(Files* files) {
  auto file = files->Open(kIndexName);
  if (absl::IsNotFound(file.status())) return std::vector<uint64_t>();
  if (!file.ok()) return file.status();
  if ((*file)->size() > kMaxIndexBytes) return Damaged();
  std::string bytes((*file)->size(), '\0');
  absl::Status status = ReadExactly(file->get(), 0, &bytes[0], bytes.size());
  if (!status.ok()) return status;
  return DecodeIndex(bytes);
}

}  // namespace

std::string EncodeIndex(const std::vector<uint64_t>& steps) {
  std::string text = absl::StrCat(kFirstLine, "\n");
  for (const uint64_t step : steps) absl::StrAppend(&text, step, "\n");
  return absl::StrCat(text, LastLine(text), "\n");
}

absl::StatusOr<std::vector<uint64_t>> DecodeIndex(absl::string_view bytes) {
  const size_t end = bytes.rfind("end ");
  if (end == absl::string_view::npos ||
      bytes.substr(end) != absl::StrCat(LastLine(bytes.substr(0, end)), "\n")) {
    return Damaged();
  }
  std::vector<absl::string_view> lines =
      absl::StrSplit(bytes.substr(0, end), '\n');
  if (lines.size() < 2 || lines.front() != kFirstLine ||
      !lines.back().empty()) {
    return Damaged();
  }
  std::vector<uint64_t> steps;
  for (size_t i = 1; i + 1 < lines.size(); ++i) {
    uint64_t step = 0;
    if (!absl::SimpleAtoi(lines[i], &step)) return Damaged();
    steps.push_back(step);
  }
  return steps;
}

absl::Status WriteIndex(Files* files, const std::vector<uint64_t>& steps) {
  absl::Status status = files->Remove(kNewIndexName);
  if (!status.ok() && !absl::IsNotFound(status)) return status;
  auto file = files->Create(kNewIndexName);
  if (!file.ok()) return file.status();
  status = WriteAll(file->get(), EncodeIndex(steps));
  if (status.ok()) status = (*file)->Sync();
  file->reset();
  if (status.ok()) status = files->Rename(kNewIndexName, kIndexName);
  if (status.ok()) return files->SyncFolder("");
  files->Remove(kNewIndexName).IgnoreError();
  return status;
}

absl::Status RemoveIndex(Files* files) {
  absl::Status status = files->Remove(kIndexName);
  if (!status.ok() && !absl::IsNotFound(status)) return status;
  return files->SyncFolder("");
}

absl::StatusOr<std::vector<uint64_t>> ListLost(Files* files) {
  auto listed = ReadIndex(files);
  if (!listed.ok()) return listed;
  if (listed->empty()) return listed;
  auto steps = ListSteps(files);
  if (!steps.ok()) return steps;
  std::sort(listed->begin(), listed->end(), std::greater<uint64_t>());
  std::vector<uint64_t> lost;
  std::set_difference(listed->begin(), listed->end(), steps->begin(),
                      steps->end(), std::back_inserter(lost),
                      std::greater<uint64_t>());
  return lost;
}

absl::Status CheckNotAllLost(Files* files, absl::string_view folder) {
  const auto steps = ListSteps(files);
  if (!steps.ok()) return steps.status();
  if (!steps->empty()) return absl::OkStatus();
  const auto lost = ListLost(files);
  if (!lost.ok()) return lost.status();
  if (lost->empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      folder, " had ", StepFolder(lost->front()),
      lost->size() > 1 ? absl::StrCat(" and ", lost->size() - 1, " more") : "",
      ", and has no manifest any more: bring the checkpoints back, start over "
      "with another folder, or remove the file ",
      kIndexName, " from this folder to start over here"));
}

}  // namespace penstock::ps::checkpoint
