#include "bench/tensors/contender.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock::bench {

const std::vector<Contender>& AllContenders() {
  static const auto* const contenders = new std::vector<Contender>{
      {"tcp-protobuf", Way::kGenerated, Transport::kTcp, Memory::kHeap, true},
      {"tcp", Way::kCodec, Transport::kTcp, Memory::kHeap, true},
      {"uds", Way::kCodec, Transport::kUds, Memory::kHeap, false},
      {"shm-protobuf", Way::kGenerated, Transport::kShm, Memory::kHeap, true},
      {"shm", Way::kCodec, Transport::kShm, Memory::kHeap, true},
      {"shm-pool", Way::kCodec, Transport::kShm, Memory::kPool, true},
      {"penstock-tcp", Way::kCodec, Transport::kPenstockTcp, Memory::kHeap,
       false},
      {"verbs", Way::kCodec, Transport::kVerbs, Memory::kHeap, false},
      {"verbs-pool", Way::kCodec, Transport::kVerbs, Memory::kPool, false},
      {"memcpy", Way::kCopy, Transport::kInproc, Memory::kHeap, true},
      {"read", Way::kRead, Transport::kInproc, Memory::kHeap, true},
      {"tcp-device", Way::kCodec, Transport::kTcp, Memory::kDevice, true,
       Memory::kDevice},
      {"penstock-tcp-device", Way::kCodec, Transport::kPenstockTcp,
       Memory::kDevice, false, Memory::kDevice},
      {"verbs-device", Way::kCodec, Transport::kVerbs, Memory::kDevice, false,
       Memory::kDevice},
      {"shm-device-staged", Way::kCodec, Transport::kShm, Memory::kDevice, true,
       Memory::kDevice, /*staged=*/true},
      {"shm-device", Way::kCodec, Transport::kShm, Memory::kDevice, true,
       Memory::kDevice},
      {"shm-to-device", Way::kCodec, Transport::kShm, Memory::kPool, true,
       Memory::kDevice},
      {"shm-from-device", Way::kCodec, Transport::kShm, Memory::kDevice, true},
      {"h2d", Way::kCopy, Transport::kInproc, Memory::kPool, true,
       Memory::kDevice},
      {"d2h", Way::kCopy, Transport::kInproc, Memory::kDevice, true,
       Memory::kPool},
      {"d2d", Way::kCopy, Transport::kInproc, Memory::kDevice, true,
       Memory::kDevice},
  };
  return *contenders;
}

bool UsesDevice(const Contender& contender) {
  return contender.memory == Memory::kDevice || contender.to == Memory::kDevice;
}

absl::StatusOr<Contender> FindContender(absl::string_view name) {
  for (const Contender& contender : AllContenders()) {
    if (contender.name == name) return contender;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "no contender \"", name, "\"; there are ",
      absl::StrJoin(AllContenders(), ", ",
                    [](std::string* out, const Contender& contender) {
                      absl::StrAppend(out, contender.name);
                    })));
}

}  // namespace penstock::bench
