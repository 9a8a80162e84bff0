// Texts about views, for people.

#ifndef PENSTOCK_PS_VIEWS_VIEW_TEXT_H_
#define PENSTOCK_PS_VIEWS_VIEW_TEXT_H_

#include <cstddef>
#include <string>

#include "ps/replication/view.h"

namespace penstock::ps::views {

// Returns "shard 0 at ps0:1, backup ps1:1".
std::string TextOfShard(const replication::View& view, size_t shard);

// Returns a text for the log: "view 7: shard 0 at ps0:1, backup ps1:1; ...".
// Names at most `shards` shards.
std::string TextOf(const replication::View& view, size_t shards = 8);

}  // namespace penstock::ps::views

#endif  // PENSTOCK_PS_VIEWS_VIEW_TEXT_H_
