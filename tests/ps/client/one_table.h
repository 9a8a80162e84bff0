// A small model, and the server that has it.

#ifndef PENSTOCK_TESTS_PS_CLIENT_ONE_TABLE_H_
#define PENSTOCK_TESTS_PS_CLIENT_ONE_TABLE_H_

#include "ps/consistency/policy.h"
#include "ps/model/model.h"
#include "ps/model/wire.h"
#include "ps/placement/placement_map.h"
#include "ps/placement/wire.h"
#include "ps/wire/ps.pb.h"

namespace penstock::ps {

// Returns a model with one dense table, whose workers do not wait.
inline Model OneTable() {
  TableSpec table;
  table.name = "w";
  table.rows = DenseSpec{tensor::DType::kF32, {2}};
  table.staleness = ConsistencyPolicy::kUnlimited;
  return {{table}};
}

// Returns the description of one server that has OneTable() as run 5.
inline v1::GetModelReply Description() {
  const Model model = OneTable();
  v1::GetModelReply reply;
  reply.set_run(5);
  reply.set_has_values(true);
  *reply.mutable_model() = ToMessage(model);
  *reply.mutable_placement() = ToMessage(
      *PlacementMap::Make({*LayoutOf(model.tables[0])}, {"ps0:7000"}, {}));
  v1::Part* const part = reply.add_parts();
  part->set_name("w");
  part->set_dtype(tensor::v1::DTYPE_F32);
  part->add_shape(2);
  part->add_pieces()->set_table("w");
  part->mutable_pieces(0)->set_rows(2);
  return reply;
}

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_CLIENT_ONE_TABLE_H_
