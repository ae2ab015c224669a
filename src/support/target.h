// Functions compiled for a better processor than the rest of their file, by GCC and by clang, which passes over GCC's pragma.
#pragma once

#define CAIRN_PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define CAIRN_TARGET_BEGIN(features) \
  CAIRN_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define CAIRN_TARGET_END CAIRN_PRAGMA(clang attribute pop)
#else
#define CAIRN_TARGET_BEGIN(features) CAIRN_PRAGMA(GCC push_options) CAIRN_PRAGMA(GCC target(features))
#define CAIRN_TARGET_END CAIRN_PRAGMA(GCC pop_options)
#endif
