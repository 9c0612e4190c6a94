/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Includes LOOPS_FILE for both kinds of items, a key with a position: k32, both in 64 bits, and
 * k64, for wider keys and longer lines. Defined are
 *
 *   ITEM, KEY_T     the item and the type of its key
 *   KEY(x), AT(x)   key and position of an item
 *   MAKE(key, at)   an item
 *   SUFFIX          the end of function names
 */
#define ITEM	     uint64_t
#define KEY_T	     uint32_t
#define KEY(x)	     ((uint32_t)((x) >> 32))
#define AT(x)	     ((int64_t)(uint32_t)(x))
#define MAKE(key, i) ((uint64_t)(key) << 32 | (uint64_t)(i))
#define SUFFIX	     k32
#include LOOPS_FILE
#undef ITEM
#undef KEY_T
#undef KEY
#undef AT
#undef MAKE
#undef SUFFIX

#define ITEM	     struct item64
#define KEY_T	     uint64_t
#define KEY(x)	     ((x).key)
#define AT(x)	     ((int64_t)(x).at)
#define MAKE(key, i) ((struct item64){ (key), (uint64_t)(i) })
#define SUFFIX	     k64
#include LOOPS_FILE
#undef ITEM
#undef KEY_T
#undef KEY
#undef AT
#undef MAKE
#undef SUFFIX
