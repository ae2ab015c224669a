// The text forms of TensorFlow's messages, for files such as graph.pbtxt and saved_model.pbtxt.
#pragma once

#include "frontends/text_proto.h"

namespace cairn::tensorflow {

extern const TextMessage kGraphDefText;
extern const TextMessage kSavedModelText;

}  // namespace cairn::tensorflow
