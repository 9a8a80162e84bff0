// The numbers of one step that are the same for all elements.

#ifndef PENSTOCK_PS_OPTIM_SCALARS_H_
#define PENSTOCK_PS_OPTIM_SCALARS_H_

namespace penstock::ps::optim {

// The constants of a step, in the precision of the computation. A constant that
// a rule does not use has a value without effect.
template <typename T>
struct Constants {
  T clip;     // the largest magnitude of a gradient's element; infinite: none
  T l2;       // L2: l2 * value is added to the gradient
  T rate;     // Adam: with the correction of the first moment's bias
  T keep;     // factor of the value (decoupled weight decay)
  T decay1;   // the decay of the momentum, or of the first moment
  T rest1;    // 1 - decay1
  T decay2;   // the decay of the mean square, or of the second moment
  T rest2;    // 1 - decay2
  T correct;  // corrects the root of the second moment; Adam's bias
  T epsilon;
  T inverse_rate;  // FTRL's 1 / alpha
  T beta;          // FTRL
  T lambda1;       // FTRL
  T lambda2;       // FTRL
};

// The scalars of one step, for all variables and rows; see
// Optimizer::ScalarsOf().
struct Scalars {
  Constants<float> f32;
  Constants<double> f64;
};

}  // namespace penstock::ps::optim

#endif  // PENSTOCK_PS_OPTIM_SCALARS_H_
