#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "collectives/hierarchical/ending.h"
#include "collectives/hierarchical/group.h"
#include "collectives/hierarchical/layout.h"
#include "collectives/host/meeting.h"
#include "collectives/net/address.h"
#include "tensor_service/dtype.h"

namespace penstock::collectives {
namespace {

using tensor::DType;

// The size of the texts that ranks exchange, in bytes. Shorter texts are padded
// with zeros.
constexpr size_t kLineBytes = 512;
using Line = std::array<char, kLineBytes>;

absl::StatusOr<Line> Pack(const std::string& text) {
  if (text.size() >= kLineBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("an address of ", text.size(), " bytes is too long"));
  }
  Line packed = {};
  std::copy(text.begin(), text.end(), packed.begin());
  return packed;
}

std::string Unpack(const Line& packed) {
  return {packed.begin(), std::find(packed.begin(), packed.end(), '\0')};
}

}  // namespace

absl::StatusOr<std::unique_ptr<HierarchicalGroup>> HierarchicalGroup::Form(
    std::unique_ptr<Listener> listener,
    const std::vector<std::string>& addresses, const NetGroupOptions& options,
    uint64_t pool_bytes) {
  const auto parsed = ParseAddresses(addresses);
  if (!parsed.ok()) return parsed.status();
  Layout layout = Layout::Of(NumberHosts(*parsed));
  if (layout.largest() > kMaxHostRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("a host has ", layout.largest(), " ranks, expected up to ",
                     kMaxHostRanks));
  }
  if (!options.memories.empty() && layout.largest() > 1) {
    return absl::InvalidArgumentError(
        "operands on devices need a NetGroup: ranks of one host share the "
        "host's memory");
  }
  const ListenerOptions listener_options = listener->options();
  auto all = NetGroup::Form(std::move(listener), addresses, options);
  if (!all.ok()) return all.status();
  std::unique_ptr<HierarchicalGroup> group(
      new HierarchicalGroup(*std::move(all), std::move(layout)));
  absl::Status status = group->ComparePools(pool_bytes);
  if (status.ok()) status = group->FormHost(options, pool_bytes);
  if (status.ok()) status = group->FormLeaders(listener_options, options);
  // Waits until all ranks have formed the group. If one rank fails before this
  // point, no rank may use the group.
  if (status.ok()) status = group->all_->Barrier();
  if (!status.ok()) return group->End(status);
  group->all_->OnEnd([ending = group->ending_] { ending->AbortAll(); });
  return group;
}

absl::Status HierarchicalGroup::ComparePools(uint64_t pool_bytes) {
  std::vector<uint64_t> sizes(static_cast<size_t>(ranks()));
  absl::Status status =
      all_->AllGather(DType::kInt64, &pool_bytes, sizes.data(), 1);
  if (!status.ok()) return status;
  for (size_t other = 1; other < sizes.size(); ++other) {
    if (sizes[other] == sizes[0]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", other, " wants a pool of ", sizes[other],
                     " bytes, rank 0 of ", sizes[0]));
  }
  return absl::OkStatus();
}

absl::Status HierarchicalGroup::FormHost(const NetGroupOptions& options,
                                         uint64_t pool_bytes) {
  if (neighbours().size() == 1) return absl::OkStatus();
  HostGroupOptions host_options;
  host_options.ranks = static_cast<int>(neighbours().size());
  host_options.pool_bytes = pool_bytes;
  host_options.meeting_timeout = options.forming_timeout;
  host_options.timeout = options.timeout;
  if (!is_leader()) {
    Line text = {};
    absl::Status received = all_->Receive(DType::kUint8, text.data(),
                                          kLineBytes, neighbours()[0], 0);
    if (!received.ok()) return received;
    auto joined =
        HostGroup::Join(Unpack(text), layout_.place_of[rank()], host_options);
    if (!joined.ok()) return OfHost(joined.status());
    host_ = *std::move(joined);
    ending_->Add(host_.get());
    return absl::OkStatus();
  }
  auto meeting = Meeting::Open();
  if (!meeting.ok()) return meeting.status();
  const absl::StatusOr<Line> text = Pack(meeting->invitation());
  if (!text.ok()) return text.status();
  for (size_t place = 1; place < neighbours().size(); ++place) {
    absl::Status sent = all_->Send(DType::kUint8, text->data(), kLineBytes,
                                   neighbours()[place], 0);
    if (!sent.ok()) return sent;
  }
  auto led = HostGroup::Lead(*std::move(meeting), host_options);
  if (!led.ok()) return OfHost(led.status());
  host_ = *std::move(led);
  ending_->Add(host_.get());
  return absl::OkStatus();
}

absl::Status HierarchicalGroup::FormLeaders(
    const ListenerOptions& listener_options, NetGroupOptions options) {
  if (layout_.hosts() == 1 || layout_.hosts() == ranks()) {
    return absl::OkStatus();
  }
  std::unique_ptr<Listener> listener;
  absl::StatusOr<Line> own = Line();
  if (is_leader()) {
    auto opened = Listener::Open(listener_options);
    if (!opened.ok()) return opened.status();
    listener = *std::move(opened);
    own = Pack(listener->address());
    if (!own.ok()) return own.status();
  }
  std::vector<Line> texts(ranks());
  absl::Status gathered =
      all_->AllGather(DType::kUint8, own->data(), texts.data(), kLineBytes);
  if (!gathered.ok() || !is_leader()) return gathered;
  std::vector<std::string> addresses;
  for (const int leader : layout_.Leaders()) {
    addresses.push_back(Unpack(texts[leader]));
  }
  options.rank = layout_.host_of[rank()];
  auto formed = NetGroup::Form(std::move(listener), addresses, options);
  if (!formed.ok()) return OfLeaders(formed.status());
  leaders_ = *std::move(formed);
  ending_->Add(leaders_.get());
  return absl::OkStatus();
}

}  // namespace penstock::collectives
