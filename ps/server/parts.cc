#include "ps/server/parts.h"

#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/model/wire.h"

namespace penstock::ps {
namespace {

// The policy, type and optimizer of a range. Only ranges with equal keys may
// share a pack.
using PackKey = std::tuple<size_t, tensor::DType, std::string>;

size_t ElementsIn(const tensor::Shape& shape) {
  size_t elements = 1;
  for (const int64_t side : shape) elements *= static_cast<size_t>(side);
  return elements;
}

// Returns a text for the optimizer of a table. Two tables have equal texts if
// and only if their optimizers are equal.
std::string OptimizerKey(const TableSpec& table) {
  Model model;
  model.tables.push_back(table);
  return ToMessage(model).tables(0).optimizer().SerializeAsString();
}

std::string NameOf(const LocalModel& model, const LocalRange& range) {
  const TableSpec& table = model.table(range.table);
  const tensor::Shape& whole = absl::get<DenseSpec>(table.rows).shape;
  if (range.shape == whole) return table.name;
  return absl::StrCat(table.name, "[", range.first_row, ":",
                      range.first_row + static_cast<uint64_t>(range.shape[0]),
                      "]");
}

Part AloneIn(const LocalModel& model, size_t at) {
  const LocalRange& range = model.ranges()[at];
  Part part;
  part.name = NameOf(model, range);
  part.dtype = absl::get<DenseSpec>(model.table(range.table).rows).dtype;
  part.shape = range.shape;
  part.policy = range.policy;
  part.table = range.table;
  part.pieces.push_back({at, 0, ElementsIn(range.shape)});
  return part;
}

void Append(Part piece, Part* pack) {
  piece.pieces[0].first = static_cast<size_t>(pack->shape[0]);
  pack->shape[0] += static_cast<int64_t>(piece.pieces[0].elements);
  pack->pieces.push_back(piece.pieces[0]);
}

// Names a pack "pack `number`". A pack of one range gets the name and shape of
// the range instead.
Part Named(Part pack, const LocalModel& model, size_t number) {
  if (pack.pieces.size() == 1) return AloneIn(model, pack.pieces[0].range);
  pack.name = absl::StrCat("pack ", number);
  return pack;
}

// Appends "'" to a part's name if another part has the same name. A table's
// name may equal the name of a pack, or of a range of another table.
void MakeUnique(const LocalModel& model, std::vector<Part>* parts) {
  std::set<std::string> used;
  for (const LocalRows& rows : model.rows()) {
    used.insert(model.table(rows.table).name);
  }
  for (Part& part : *parts) {
    while (!used.insert(part.name).second) part.name += "'";
  }
}

}  // namespace

size_t ElementsOf(const Part& part) { return ElementsIn(part.shape); }

std::vector<Part> LayOut(const LocalModel& model) {
  std::vector<Part> parts;
  std::map<PackKey, Part> packs;
  for (size_t at = 0; at < model.ranges().size(); ++at) {
    Part part = AloneIn(model, at);
    const size_t bytes =
        part.pieces[0].elements * tensor::ElementSize(part.dtype);
    if (bytes >= kPackBelowBytes) {
      parts.push_back(std::move(part));
      continue;
    }
    PackKey key(part.policy, part.dtype, OptimizerKey(model.table(part.table)));
    auto pack = packs.find(key);
    if (pack == packs.end()) {
      Part empty = part;
      empty.shape = {0};
      empty.pieces.clear();
      pack = packs.insert({std::move(key), std::move(empty)}).first;
    }
    Append(std::move(part), &pack->second);
  }
  size_t number = 0;
  for (auto& [key, pack] : packs) {
    const bool is_pack = pack.pieces.size() > 1;
    parts.push_back(Named(std::move(pack), model, number));
    number += is_pack ? 1 : 0;
  }
  MakeUnique(model, &parts);
  return parts;
}

}  // namespace penstock::ps
