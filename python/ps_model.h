// What a Python program says that is trained.

#ifndef PENSTOCK_PYTHON_PS_MODEL_H_
#define PENSTOCK_PYTHON_PS_MODEL_H_

#include <pybind11/pybind11.h>

#include "ps/client/gradients.h"
#include "ps/client/layout.h"
#include "ps/model/model.h"

namespace penstock::python {

// Returns the model of an iterable of ps.Dense and ps.Sparse. Throws what names
// the table and the field, and what CheckModel() returns.
ps::Model ModelOf(pybind11::handle tables);

// Returns a tuple of ps.Table for each table, in the order of the model.
pybind11::tuple TablesOf(const ps::Model& model);

// Returns what makes the coders of a dict of ps.Half, ps.TopK and so on, by
// tables. Workers of other ranks draw other random numbers.
ps::MakeGradientCoder CodersOf(pybind11::handle compression, uint32_t rank);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_PS_MODEL_H_
