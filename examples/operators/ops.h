// The three operators of this library.
#pragma once

#include <cairn/op.hpp>

cairn::op::Row swish();
cairn::op::Row l2_norm();
cairn::op::Row running_mean();
