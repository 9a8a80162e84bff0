#include "ps/membership/agreements.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "ps/membership/keys.h"

namespace penstock::ps::membership {
namespace {

// Limits the attempts of a write while other processes write the same key.
constexpr int kMaxTries = 8;

// The message in a key, and its revision for a conditional write.
template <typename Message>
struct Present {
  absl::optional<Message> message;
  int64_t revision = 0;
};

template <typename Message>
absl::StatusOr<Present<Message>> ReadMessage(Registry* registry,
                                             const char* key) {
  const auto value = registry->Read(key);
  if (!value.ok()) return value.status();
  Present<Message> present;
  if (!value->has_value()) return present;
  present.revision = (*value)->revision;
  if (!present.message.emplace().ParseFromString((*value)->bytes)) {
    return absl::DataLossError(
        absl::StrCat(registry->prefix(), key,
                     " in etcd is not of Penstock, or of another "
                     "release: use another prefix"));
  }
  return present;
}

absl::Status Contended(const Registry& registry, const char* key) {
  return absl::AbortedError(
      absl::StrCat(registry.prefix(), key,
                   " in etcd: other processes write it all the "
                   "time"));
}

}  // namespace

absl::StatusOr<absl::optional<std::string>> ReadModel(Registry* registry) {
  const auto value = registry->Read(kModel);
  if (!value.ok()) return value.status();
  if (!value->has_value()) return absl::optional<std::string>();
  return absl::optional<std::string>((*value)->bytes);
}

absl::Status AgreeOnModel(Registry* registry, const std::string& model) {
  const auto written = registry->Write(kModel, model, /*revision=*/0);
  if (!written.ok()) return written.status();
  if (written->is_done || (written->found && written->found->bytes == model)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      registry->prefix(), kModel,
      " in etcd is another model: a chief has "
      "chosen it. Use that model or another prefix; or end the former "
      "training, and: etcdctl del --prefix ",
      registry->prefix()));
}

absl::StatusOr<absl::optional<v1::View>> ReadView(Registry* registry) {
  auto present = ReadMessage<v1::View>(registry, kView);
  if (!present.ok()) return present.status();
  return present->message;
}

absl::Status AdvanceView(Registry* registry, const v1::View& next,
                         const absl::optional<Registry::Guard>& guard) {
  const auto present = ReadMessage<v1::View>(registry, kView);
  if (!present.ok()) return present.status();
  const v1::View now = present->message.value_or(v1::View());
  const std::string bytes = next.SerializeAsString();
  if (now.number() == next.number() && now.SerializeAsString() == bytes) {
    return absl::OkStatus();
  }
  if (now.number() >= next.number()) {
    return absl::AbortedError(
        absl::StrCat("view ", next.number(), " comes too late: view ",
                     now.number(), " exists. Read it and decide again"));
  }
  if (now.number() + 1 != next.number()) {
    return absl::FailedPreconditionError(
        absl::StrCat("view ", next.number(), " does not follow view ",
                     now.number(), ", the newest one"));
  }
  const auto written = registry->Write(kView, bytes, present->revision,
                                       /*lease=*/0, guard);
  if (!written.ok()) return written.status();
  if (written->is_done || (written->found && written->found->bytes == bytes)) {
    return absl::OkStatus();
  }
  return absl::AbortedError(
      absl::StrCat("another process made view ", next.number(),
                   " at the same time. Read it and decide again"));
}

absl::StatusOr<absl::optional<v1::Cut>> ReadCut(Registry* registry) {
  auto present = ReadMessage<v1::Cut>(registry, kCut);
  if (!present.ok()) return present.status();
  return present->message;
}

absl::Status RecordCut(Registry* registry, const v1::Cut& cut) {
  for (int i = 0; i < kMaxTries; ++i) {
    const auto present = ReadMessage<v1::Cut>(registry, kCut);
    if (!present.ok()) return present.status();
    if (present->message && present->message->run() == cut.run() &&
        present->message->step() > cut.step()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the checkpoint of step ", cut.step(), " is not the newest: step ",
          present->message->step(), " of this run is recorded"));
    }
    const auto written =
        registry->Write(kCut, cut.SerializeAsString(), present->revision);
    if (!written.ok()) return written.status();
    if (written->is_done) return absl::OkStatus();
  }
  return Contended(*registry, kCut);
}

absl::Status NewestView::Take(const v1::View& view) {
  if (view.number() < view_.number()) {
    return absl::DataLossError(absl::StrCat(
        "etcd has view ", view.number(), ", but view ", view_.number(),
        " was there already: etcd was restored from a backup. View ",
        view_.number(), " stays in force here; restart all servers"));
  }
  if (view.number() == view_.number() && view.number() > 0 &&
      view.decision() != view_.decision()) {
    return absl::DataLossError(
        absl::StrCat("etcd has two views of number ", view.number(),
                     ": etcd was restored from a backup. The first one stays "
                     "in force here; restart all servers"));
  }
  view_ = view;
  return absl::OkStatus();
}

}  // namespace penstock::ps::membership
