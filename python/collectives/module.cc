// The extension module penstock._collectives: groups of ranks. Only the package
// penstock.collectives calls this module. The package checks arguments and
// arrays first.

#include <pybind11/pybind11.h>

#include "collectives/net/group.h"
#include "python/collectives/bindings.h"
#include "python/collectives/group.h"
#include "python/gil.h"

PYBIND11_MODULE(_collectives, module) {
  namespace python = penstock::python;
  module.attr("MAX_RANKS") = penstock::collectives::kMaxNetRanks;
  python::BindLentMemory(module);
  python::BindForming(module);
  python::BindPoolArray(module);
  python::BindGroup(module);
  python::NoteMainThread();
  python::SurviveForks();
  python::PrepareForExit([] {});
}
