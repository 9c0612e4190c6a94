# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Utilities around tensors and graphs."""
