/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Undefines what the includers of reducer_loops.h define. */
#undef REDUCER
#undef REDUCER_SCALAR
#undef A
#undef GIVES
#undef IDENTITY
#undef GET
#undef VGET
#undef OP
#undef VOP
