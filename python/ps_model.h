// Converts the model that a Python program trains.

#ifndef PENSTOCK_PYTHON_PS_MODEL_H_
#define PENSTOCK_PYTHON_PS_MODEL_H_

#include <pybind11/pybind11.h>

#include "ps/client/gradients.h"
#include "ps/client/layout.h"
#include "ps/model/model.h"

namespace penstock::python {

// Returns the model of an iterable of ps.Dense and ps.Sparse. Throws an error
// that names the table and the field, and the errors of CheckModel().
ps::Model ModelOf(pybind11::handle tables);

// Returns a tuple with a ps.Table for each table, in the order of the model.
pybind11::tuple TablesOf(const ps::Model& model);

// Returns a factory of gradient coders for a dict of ps.Half, ps.TopK and so
// on, by table. Workers of different ranks draw different random numbers.
ps::MakeGradientCoder CodersOf(pybind11::handle compression, uint32_t rank);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_PS_MODEL_H_
