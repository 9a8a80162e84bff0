#include "ps/checkpoint/model.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensor_service/text.h"

namespace penstock::ps::checkpoint {
namespace {

constexpr size_t kMaxNameBytes = 4096;
constexpr size_t kMaxSides = 16;
constexpr size_t kMaxSlots = 16;
constexpr uint64_t kMaxTableBytes = uint64_t{1} << 56;

std::string Subject(const TableDefinition& table) {
  return absl::StrCat("table '", tensor::Quoted(table.name), "'");
}

absl::Status Bad(const TableDefinition& table, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(Subject(table), ": ", what));
}

bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxNameBytes;
}

absl::Status CheckSlots(const TableDefinition& table) {
  if (table.slots.size() > kMaxSlots) return Bad(table, "more than 16 slots");
  std::set<std::string> names;
  for (const SlotDefinition& slot : table.slots) {
    if (!IsName(slot.name)) return Bad(table, "a slot's name is bad");
    if (!names.insert(slot.name).second) {
      return Bad(table,
                 absl::StrCat("two slots '", tensor::Quoted(slot.name), "'"));
    }
  }
  return absl::OkStatus();
}

// Returns the number of bytes of a tensor in all streams. Returns
// kMaxTableBytes instead of a larger number.
uint64_t BytesUpToLimit(const TableDefinition& table) {
  uint64_t bytes = tensor::ElementSize(table.dtype);
  for (const SlotDefinition& slot : table.slots) {
    bytes += tensor::ElementSize(slot.dtype);
  }
  for (int64_t side : table.shape) {
    if (side == 0) return 0;
    const auto factor = static_cast<uint64_t>(side);
    if (factor > kMaxTableBytes / bytes) return kMaxTableBytes;
    bytes *= factor;
  }
  return bytes;
}

absl::Status CheckShape(const TableDefinition& table) {
  if (table.shape.size() > kMaxSides) return Bad(table, "more than 16 sides");
  for (int64_t side : table.shape) {
    if (side < 0) return Bad(table, "a side is negative");
  }
  // Check the size with each dimension of 0 replaced by 1. Otherwise 0 could
  // hide an overflow of the other dimensions.
  TableDefinition full = table;
  for (int64_t& side : full.shape) side = std::max<int64_t>(side, 1);
  const uint64_t bytes = BytesUpToLimit(full);
  if (bytes >= kMaxTableBytes) return Bad(table, "2^56 bytes or more");
  if (table.kind == TableKind::kSparse && bytes > kMaxSparseRowBytes) {
    return Bad(table, "a row has more than 8 MiB with its slots");
  }
  return absl::OkStatus();
}

std::string KindName(TableKind kind) {
  return kind == TableKind::kDense ? "dense" : "sparse";
}

std::string Shape(const TableDefinition& table) {
  return absl::StrCat("[", absl::StrJoin(table.shape, ", "), "]");
}

std::string SlotNames(const TableDefinition& table) {
  if (table.slots.empty()) return "no slots";
  return absl::StrCat(
      "slots ", absl::StrJoin(table.slots, ", ",
                              [](std::string* out, const SlotDefinition& slot) {
                                absl::StrAppend(out, tensor::Quoted(slot.name),
                                                " ", tensor::Name(slot.dtype));
                              }));
}

std::string Differs(const TableDefinition& in_checkpoint,
                    const TableDefinition& ours) {
  const auto is = [&](absl::string_view there, absl::string_view here) {
    return absl::StrCat(Subject(ours), " is ", there, " in the checkpoint and ",
                        here, " in this model");
  };
  if (in_checkpoint.kind != ours.kind) {
    return is(KindName(in_checkpoint.kind), KindName(ours.kind));
  }
  if (in_checkpoint.dtype != ours.dtype) {
    return is(tensor::Name(in_checkpoint.dtype), tensor::Name(ours.dtype));
  }
  if (in_checkpoint.shape != ours.shape) {
    return is(Shape(in_checkpoint), Shape(ours));
  }
  const bool same_slots =
      std::equal(in_checkpoint.slots.begin(), in_checkpoint.slots.end(),
                 ours.slots.begin(), ours.slots.end(),
                 [](const SlotDefinition& a, const SlotDefinition& b) {
                   return a.name == b.name && a.dtype == b.dtype;
                 });
  if (same_slots) return "";
  return absl::StrCat(Subject(ours), " has ", SlotNames(in_checkpoint),
                      " in the checkpoint and ", SlotNames(ours),
                      " in this model");
}

}  // namespace

size_t Streams(const TableDefinition& table) { return 1 + table.slots.size(); }

tensor::DType StreamType(const TableDefinition& table, size_t stream) {
  return stream == 0 ? table.dtype : table.slots[stream - 1].dtype;
}

uint64_t Rows(const TableDefinition& table) {
  return table.shape.empty() ? 1 : static_cast<uint64_t>(table.shape[0]);
}

uint64_t RowElements(const TableDefinition& table) {
  const size_t first =
      table.kind == TableKind::kSparse || table.shape.empty() ? 0 : 1;
  uint64_t elements = 1;
  for (size_t i = first; i < table.shape.size(); ++i) {
    elements *= static_cast<uint64_t>(table.shape[i]);
  }
  return elements;
}

uint64_t RowBytes(const TableDefinition& table) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < Streams(table); ++i) {
    bytes += RowElements(table) * tensor::ElementSize(StreamType(table, i));
  }
  return bytes;
}

absl::Status CheckModel(const Model& model) {
  std::set<std::string> names;
  for (const TableDefinition& table : model.tables) {
    if (!IsName(table.name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a table's name has ", table.name.size(),
                       " bytes: 1 to ", kMaxNameBytes, " are allowed"));
    }
    if (!names.insert(table.name).second) {
      return Bad(table, "appears twice");
    }
    absl::Status status = CheckSlots(table);
    if (status.ok()) status = CheckShape(table);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

std::string DifferenceOfCommon(const Model& in_checkpoint, const Model& ours) {
  std::map<std::string, const TableDefinition*> there;
  for (const TableDefinition& table : in_checkpoint.tables) {
    there[table.name] = &table;
  }
  for (const TableDefinition& table : ours.tables) {
    const auto found = there.find(table.name);
    if (found == there.end()) continue;
    std::string difference = Differs(*found->second, table);
    if (!difference.empty()) return difference;
  }
  return "";
}

std::vector<std::string> NotIn(const Model& other, const Model& model) {
  std::set<absl::string_view> there;
  for (const TableDefinition& table : other.tables) there.insert(table.name);
  std::vector<std::string> names;
  for (const TableDefinition& table : model.tables) {
    if (there.count(table.name) == 0) names.push_back(table.name);
  }
  return names;
}

std::string Difference(const Model& in_checkpoint, const Model& ours) {
  std::map<std::string, const TableDefinition*> there;
  for (const TableDefinition& table : in_checkpoint.tables) {
    there[table.name] = &table;
  }
  for (const TableDefinition& table : ours.tables) {
    const auto found = there.find(table.name);
    if (found == there.end()) {
      return absl::StrCat(Subject(table), " is not in the checkpoint");
    }
    std::string difference = Differs(*found->second, table);
    if (!difference.empty()) return difference;
    there.erase(found);
  }
  if (there.empty()) return "";
  return absl::StrCat(Subject(*there.begin()->second),
                      " is in the checkpoint and not in this model");
}

}  // namespace penstock::ps::checkpoint
