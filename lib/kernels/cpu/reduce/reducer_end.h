/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Undefines the macros that an includer of reducer_loops.h defines. */
#undef REDUCER
#undef REDUCER_SCALAR
#undef A
#undef GIVES
#undef IDENTITY
#undef GET
#undef VGET
#undef OP
#undef VOP
