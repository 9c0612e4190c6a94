# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""A reader of pickles that creates only containers, numbers and strings, and calls only a list of functions.

Nothing is imported, and no attribute of an object is looked up by a name in the file. The opcodes are those
that pickle's protocols 2 to 5 write for such values; others are refused. Strings, lists and numbers cannot
be longer than the file, the number of containers is limited, and so is what the value would be if containers
that occur several times were written out (a list of ten lists of ten lists and so on).
"""
import pickle
import struct
from collections import OrderedDict

MAX_CONTAINERS = 4_000_000
MAX_EXPANDED = 20_000_000
MAX_DEPTH = 100

_MARK = object()
_KEYS = (str, int, float, bool, type(None))


class UnpicklingError(pickle.UnpicklingError, ValueError):
    """A pickle that is broken, or has objects that are not read."""


class Function:
    """A function that a pickle may call: a name, and a function of this library."""
    __slots__ = ("name", "call")

    def __init__(self, name, call):
        self.name, self.call = name, call


def refuse_global(module, name):
    """The exception for a class or function that is not read."""
    return UnpicklingError(f"the file refers to {module[:80]}.{name[:80]}, which is not read: only tensors, "
                           "OrderedDict, dict, list, tuple, numbers, strings and dtypes are")


class Reader:
    """Reads one pickle. find_global(module, name) and load_persistent(id) return values or raise."""

    def __init__(self, data, find_global, load_persistent):
        self.data, self.at = data, 0
        self.find_global, self.load_persistent = find_global, load_persistent
        self.stack, self.memo, self.containers = [], {}, 0

    def load(self):
        """The value. UnpicklingError for anything else than a complete, permitted pickle."""
        try:
            while True:
                code = self.take(1)[0]
                if code == 0x2e:  # STOP
                    break
                operation = _OPERATIONS.get(code)
                if operation is None:
                    raise UnpicklingError(f"the pickle has the opcode 0x{code:02x}, which is not read")
                operation(self)
            if len(self.stack) != 1 or self.stack[0] is _MARK:
                raise UnpicklingError("the pickle is not one value")
        except (IndexError, KeyError, struct.error, UnicodeDecodeError, OverflowError) as e:
            raise UnpicklingError(f"a broken pickle: {e!r}") from None
        check_value(self.stack[0])
        return self.stack[0]

    # ---- parts ----

    def take(self, n):
        if n < 0 or n > len(self.data) - self.at:
            raise UnpicklingError("the pickle is truncated")
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self, form, size):
        return struct.unpack(form, self.take(size))[0]

    def line(self):
        end = self.data.find(b"\n", self.at, self.at + 1024)
        if end < 0:
            raise UnpicklingError("the pickle is truncated")
        text = self.data[self.at:end].decode("utf-8")
        self.at = end + 1
        return text

    def pop(self):
        value = self.stack.pop()
        if value is _MARK:
            raise UnpicklingError("the pickle takes a value that is not there")
        return value

    def pop_mark(self):
        """The values above the last mark, which is removed, too."""
        at = len(self.stack) - 1
        while self.stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise UnpicklingError("the pickle has no mark where it needs one")
        values = self.stack[at + 1:]
        del self.stack[at:]
        return values

    def top(self, *types):
        value = self.stack[-1]
        if type(value) not in types:
            raise UnpicklingError(f"the pickle changes a {_name(value)} as if it was a {types[0].__name__}")
        return value

    def push_container(self, value):
        self.containers += 1
        if self.containers > MAX_CONTAINERS:
            raise UnpicklingError(f"the pickle has more than {MAX_CONTAINERS} containers")
        self.stack.append(value)

    # ---- opcodes ----

    def proto(self):
        if self.take(1)[0] > 5:
            raise UnpicklingError("the pickle has a protocol above 5")

    def frame(self):
        self.take(8)

    def integer(self, form, size):
        self.stack.append(self.number(form, size))

    def long1(self):
        self.stack.append(int.from_bytes(self.take(self.take(1)[0]), "little", signed=True))

    def text(self, form, size):
        self.stack.append(self.take(self.number(form, size)).decode("utf-8"))

    def put(self, index):
        if self.stack[-1] is _MARK:
            raise UnpicklingError("the pickle keeps a mark")
        self.memo[index] = self.stack[-1]

    def get(self, index):
        self.stack.append(self.memo[index])

    def make_tuple(self, n):
        values = tuple(self.pop() for _ in range(n))[::-1]
        self.push_container(values)

    def append(self):
        value = self.pop()
        self.top(list).append(value)

    def appends(self):
        values = self.pop_mark()
        self.top(list).extend(values)

    def set_item(self):
        value, key = self.pop(), self.pop()
        set_items(self.top(dict, OrderedDict), [key, value])

    def set_items(self):
        values = self.pop_mark()
        set_items(self.top(dict, OrderedDict), values)

    def make_list(self):
        self.push_container(self.pop_mark())

    def make_dict(self):
        values = self.pop_mark()
        self.push_container(set_items({}, values))

    def global_line(self):
        module, name = self.line(), self.line()
        self.stack.append(self.find_global(module, name))

    def global_stack(self):
        name, module = self.pop(), self.pop()
        if type(name) is not str or type(module) is not str:
            raise UnpicklingError("the name of a class is no string")
        self.stack.append(self.find_global(module, name))

    def persistent(self):
        self.stack.append(self.load_persistent(self.pop()))

    def reduce(self):
        arguments, function = self.pop(), self.pop()
        if type(function) is not Function:
            raise UnpicklingError(f"the pickle calls a {_name(function)}")
        if type(arguments) is not tuple:
            raise UnpicklingError(f"the pickle calls {function.name} with a {_name(arguments)}")
        try:
            value = function.call(*arguments)
        except UnpicklingError:
            raise
        except (TypeError, ValueError, RuntimeError, OverflowError) as e:
            raise UnpicklingError(f"{function.name}: {e}") from None
        self.push_container(value)

    def build(self):
        """The state of an OrderedDict that Module.state_dict() returned: its _metadata."""
        state = self.pop()
        target = self.top(OrderedDict)
        if type(state) is not dict or list(state) not in ([], ["_metadata"]):
            raise UnpicklingError("the pickle sets attributes of an OrderedDict other than _metadata")
        target.__dict__.update(state)


def _name(value):
    return "mark" if value is _MARK else type(value).__name__


def set_items(target, values):
    """Adds keys and values, which alternate. Keys are strings and numbers."""
    if len(values) % 2:
        raise UnpicklingError("the pickle has a key without a value")
    for key, value in zip(values[::2], values[1::2]):
        if type(key) not in _KEYS:
            raise UnpicklingError(f"the pickle has a {_name(key)} as the key of a dict")
        target[key] = value
    return target


def _constant(value):
    return lambda reader: reader.stack.append(value)


def _container(kind):
    return lambda reader: reader.push_container(kind())


_OPERATIONS = {
    0x80: Reader.proto, 0x95: Reader.frame,
    ord("("): lambda r: r.stack.append(_MARK),
    ord("N"): _constant(None), 0x88: _constant(True), 0x89: _constant(False),
    ord("K"): lambda r: r.integer("<B", 1), ord("M"): lambda r: r.integer("<H", 2),
    ord("J"): lambda r: r.integer("<i", 4), ord("G"): lambda r: r.integer(">d", 8),
    0x8a: Reader.long1,
    ord("X"): lambda r: r.text("<I", 4), 0x8c: lambda r: r.text("<B", 1), 0x8d: lambda r: r.text("<Q", 8),
    ord("q"): lambda r: r.put(r.number("<B", 1)), ord("r"): lambda r: r.put(r.number("<I", 4)),
    0x94: lambda r: r.put(len(r.memo)),
    ord("h"): lambda r: r.get(r.number("<B", 1)), ord("j"): lambda r: r.get(r.number("<I", 4)),
    ord(")"): _container(tuple), ord("]"): _container(list), ord("}"): _container(dict),
    0x85: lambda r: r.make_tuple(1), 0x86: lambda r: r.make_tuple(2), 0x87: lambda r: r.make_tuple(3),
    ord("t"): lambda r: r.push_container(tuple(r.pop_mark())), ord("l"): Reader.make_list,
    ord("d"): Reader.make_dict,
    ord("a"): Reader.append, ord("e"): Reader.appends, ord("s"): Reader.set_item, ord("u"): Reader.set_items,
    ord("c"): Reader.global_line, 0x93: Reader.global_stack, ord("Q"): Reader.persistent,
    ord("R"): Reader.reduce, ord("b"): Reader.build,
}


# ---- the value as a whole ----

def _children(value):
    if type(value) is OrderedDict and value.__dict__:
        return [*value.values(), *value.__dict__.values()]
    if isinstance(value, dict):
        return list(value.values())
    return value if type(value) in (list, tuple) else ()


def check_value(root):
    """Refuses a value that contains itself, is nested deeply, or is huge when it is written out.

    Also refuses functions and storages, which a pickle may mention only where they are used.
    """
    known = {}  # of each finished container: its size when it is written out, and its depth
    open_ids, path = set(), []
    _open(root, open_ids, path)
    while path:
        container, children, size, depth = path[-1]
        child = next(children, _MARK)
        if child is _MARK:
            path.pop()
            open_ids.discard(id(container))
            known[id(container)] = size, depth
        elif id(child) in open_ids:
            raise UnpicklingError("the value contains itself")
        elif id(child) not in known and type(child) in _CONTAINERS:
            _open(child, open_ids, path)
            continue
        else:
            _check_leaf(child)
            size, depth = known.get(id(child), (1, 0))
        if path:
            _add(path, size, depth)


_CONTAINERS = (list, tuple, dict, OrderedDict)


def _open(value, open_ids, path):
    """Begins with a container: its parts, size and depth follow."""
    _check_leaf(value)
    open_ids.add(id(value))
    path.append([value, iter(_children(value)), 1, 1])


def _add(path, size, depth):
    """Adds a part to the innermost container."""
    inner = path[-1]
    inner[2] += size
    inner[3] = max(inner[3], depth + 1)
    if inner[2] > MAX_EXPANDED:
        raise UnpicklingError(f"the value has more than {MAX_EXPANDED} parts")
    if len(path) + depth > MAX_DEPTH:
        raise UnpicklingError(f"the value is nested more than {MAX_DEPTH} deep")


def _check_leaf(value):
    if getattr(type(value), "internal_to_pickle", False) or type(value) is Function:
        raise UnpicklingError(f"the value contains a {getattr(value, 'name', type(value).__name__)}, "
                              "which is no tensor")
