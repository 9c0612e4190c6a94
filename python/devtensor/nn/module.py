# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The base class of models: parameters, buffers and children by name."""
import itertools
from collections import OrderedDict, namedtuple

from devtensor import _C
from devtensor._C import Tensor
from devtensor.nn._backward_hooks import BackwardHooks
from devtensor.nn._state import load_into
from devtensor.nn.parameter import Buffer, Parameter

__all__ = ['Module']

_hook_ids = itertools.count()


class RemovableHandle:
    """Removes a hook: handle.remove(), or at the end of a with statement."""

    def __init__(self, *hooks):
        self.id, self._hooks = next(_hook_ids), hooks

    def remove(self):
        for hooks in self._hooks:
            hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()


def _unique(pairs):
    """Pairs whose objects appear for the first time."""
    seen = set()
    for name, value in pairs:
        if id(value) not in seen:
            seen.add(id(value))
            yield name, value


class Module:
    """A model or a part of one.

    Parameters, modules and buffers that are assigned to attributes are registered under the attribute's name. They are
    in the instance's dict as well, so reading them costs what reading any attribute does.
    """

    training: bool
    dump_patches = False
    _version = 1

    def __init__(self):
        own = self.__dict__
        own['training'] = True
        own['_parameters'], own['_buffers'], own['_modules'] = {}, {}, {}
        own['_not_persistent'] = set()
        own['_hooks'], own['_pre_hooks'] = {}, {}
        own['_backward_hooks'], own['_backward_pre_hooks'] = {}, {}
        own['_with_kwargs'], own['_always'] = {}, {}
        own['_state_dict_hooks'] = {}

    def forward(self, *args, **kwargs):
        """Compute the result of a call; every module defines it."""
        raise NotImplementedError(f'{type(self).__name__} has no forward()')

    # ---- calls ----

    def __call__(self, *args, **kwargs):
        if self._hooks or self._pre_hooks or self._backward_hooks or self._backward_pre_hooks:
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    def _call_with_hooks(self, args, kwargs):
        result, done = None, False
        try:
            for key, hook in list(self._pre_hooks.items()):
                changed = hook(self, args, kwargs) if key in self._with_kwargs else hook(self, args)
                if changed is None:
                    continue
                if key in self._with_kwargs:
                    args, kwargs = changed
                else:
                    args = changed if isinstance(changed, tuple) else (changed,)
            in_backward = self._hooks_in_backward()
            args = in_backward.around_inputs(args) if in_backward else args
            result, done = self.forward(*args, **kwargs), True
        finally:
            for key, hook in list(self._hooks.items()):
                if not done and key not in self._always:
                    continue
                changed = hook(self, args, kwargs, result) if key in self._with_kwargs else hook(self, args, result)
                result = result if changed is None else changed
        return in_backward.around_outputs(result) if in_backward else result

    def _hooks_in_backward(self):
        if not (self._backward_hooks or self._backward_pre_hooks):
            return None
        return BackwardHooks(self, list(self._backward_hooks.values()), list(self._backward_pre_hooks.values()))

    def _add_hook(self, hooks, hook, prepend, with_kwargs, always=False):
        handle = RemovableHandle(hooks, self._with_kwargs, self._always)
        if with_kwargs:
            self._with_kwargs[handle.id] = True
        if always:
            self._always[handle.id] = True
        others = dict(hooks) if prepend else {}
        if prepend:
            hooks.clear()
        hooks[handle.id] = hook
        hooks.update(others)
        return handle

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """hook(module, args, result) or hook(module, args, kwargs, result) after each call; may return another
        result."""
        return self._add_hook(self._hooks, hook, prepend, with_kwargs, always_call)

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """hook(module, args) before each call, which may return other arguments; with_kwargs: (args, kwargs)."""
        return self._add_hook(self._pre_hooks, hook, prepend, with_kwargs)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """hook(module, grad_output) when backward arrives at the results of a call: a tuple with a gradient for each,
        None where there is none. It may return other gradients. The results are new tensors, not to be changed in
        place."""
        return self._add_hook(self._backward_pre_hooks, hook, prepend, False)

    def register_full_backward_hook(self, hook, prepend=False):
        """hook(module, grad_input, grad_output) when the gradients of the arguments by position are complete: tuples,
        None for what is no tensor and requires no gradient. It may return other gradients in place of grad_input.
        Arguments and results of a call are new tensors, not to be changed in place."""
        return self._add_hook(self._backward_hooks, hook, prepend, False)

    # ---- attributes ----

    def _check_name(self, name, kind):
        if '_parameters' not in self.__dict__:
            raise AttributeError(f'a {kind} is assigned before Module.__init__() was called')
        if not isinstance(name, str) or not name or '.' in name:
            raise KeyError(f'the name of a {kind} is a string without ".", not empty, got {name!r}')

    def _forget(self, name):
        """Remove a name from all lists."""
        for names in (self._parameters, self._buffers, self._modules):
            names.pop(name, None)
        self._not_persistent.discard(name)
        self.__dict__.pop(name, None)

    def _register(self, names, name, value, kind):
        self._check_name(name, kind)
        if hasattr(self, name) and name not in names:
            raise KeyError(f'the attribute {name!r} exists already')
        names[name] = self.__dict__[name] = value

    def register_parameter(self, name, param):
        """Add a Parameter, or None, which reserves the name."""
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f'register_parameter: {name!r} is no Parameter but {type(param).__name__}')
        self._register(getattr(self, '_parameters', None), name, param, 'parameter')

    def register_buffer(self, name, tensor, persistent=True):
        """Add a tensor that is state but no parameter; persistent: it is in the state_dict."""
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f'register_buffer: {name!r} is no tensor but {type(tensor).__name__}')
        self._register(getattr(self, '_buffers', None), name, tensor, 'buffer')
        if persistent:
            self._not_persistent.discard(name)
        else:
            self._not_persistent.add(name)

    def register_module(self, name, module):
        """Add a child."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f'{name!r} is no Module but {type(module).__name__}')
        self._register(getattr(self, '_modules', None), name, module, 'module')

    add_module = register_module

    def __setattr__(self, name, value):
        own = self.__dict__
        if isinstance(value, (Parameter, Module)):
            self._check_name(name, 'parameter or module')
            names = own['_parameters'] if isinstance(value, Parameter) else own['_modules']
            if name not in names:
                self._forget(name)
            names[name] = own[name] = value
        elif isinstance(value, Buffer):
            self._forget(name)
            self.register_buffer(name, value, value.persistent)
        elif '_parameters' in own and name in own['_parameters']:
            if value is not None:
                raise TypeError(f'{name!r} is a parameter: assign a Parameter or None, not {type(value).__name__}')
            own['_parameters'][name] = own[name] = None
        elif '_modules' in own and name in own['_modules']:
            if value is not None:
                raise TypeError(f'{name!r} is a module: assign a Module or None, not {type(value).__name__}')
            own['_modules'][name] = own[name] = None
        elif '_buffers' in own and name in own['_buffers']:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f'{name!r} is a buffer: assign a tensor or None, not {type(value).__name__}')
            own['_buffers'][name] = own[name] = value
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name):
        own = self.__dict__
        if any(name in own.get(names, ()) for names in ('_parameters', '_buffers', '_modules')):
            self._forget(name)
        else:
            object.__delattr__(self, name)

    # ---- lists ----

    def named_modules(self, memo=None, prefix='', remove_duplicate=True):
        """This module as prefix, and all below it."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f'{prefix}.{name}' if prefix else name, remove_duplicate)

    def modules(self):
        return (module for _, module in self.named_modules())

    def named_children(self):
        return _unique((name, module) for name, module in self._modules.items() if module is not None)

    def children(self):
        return (module for _, module in self.named_children())

    def _named_members(self, get, prefix, recurse, remove_duplicate):
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        pairs = ((f'{path}.{name}' if path else name, value) for path, module in modules
                 for name, value in get(module).items() if value is not None)
        return _unique(pairs) if remove_duplicate else pairs

    def named_parameters(self, prefix='', recurse=True, remove_duplicate=True):
        return self._named_members(lambda module: module._parameters, prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix='', recurse=True, remove_duplicate=True):
        return self._named_members(lambda module: module._buffers, prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def get_submodule(self, target):
        module = self
        for name in target.split('.') if target else []:
            child = getattr(module, name, None)
            if not isinstance(child, Module):
                raise AttributeError(f'{type(module).__name__} has no module {name!r}')
            module = child
        return module

    def _get_member(self, target, names, kind):
        path, _, name = target.rpartition('.')
        members = getattr(self.get_submodule(path), names)
        if name not in members:
            raise AttributeError(f'there is no {kind} {target!r}')
        return members[name]

    def get_parameter(self, target):
        return self._get_member(target, '_parameters', 'parameter')

    def get_buffer(self, target):
        return self._get_member(target, '_buffers', 'buffer')

    # ---- state ----

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, value in itertools.chain(self._parameters.items(), self._buffers.items()):
            if value is not None and name not in self._not_persistent:
                destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[prefix + '_extra_state'] = self.get_extra_state()

    def get_extra_state(self):
        raise RuntimeError('a module with set_extra_state() defines get_extra_state(), too')

    def set_extra_state(self, state):
        raise RuntimeError('a module with get_extra_state() defines set_extra_state(), too')

    def state_dict(self, *, destination=None, prefix='', keep_vars=False):
        """Names and tensors of all parameters and persistent buffers, on the same memory."""
        destination = OrderedDict() if destination is None else destination
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f'{prefix}{name}.', keep_vars=keep_vars)
        return destination

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copy the values of a state_dict, also of one of PyTorch. strict: RuntimeError for names that are missing or
        not known. assign: take over the tensors themselves. After an error nothing is changed."""
        missing, unexpected, errors = load_into(self, state_dict, strict, assign)
        if strict:
            errors += [f'unexpected names: {", ".join(map(repr, unexpected))}'] if unexpected else []
            errors += [f'missing names: {", ".join(map(repr, missing))}'] if missing else []
        if errors:
            raise RuntimeError(f'load_state_dict of {type(self).__name__}: ' + '; '.join(errors))
        return _IncompatibleKeys(missing, unexpected)

    # ---- modes and conversions ----

    def train(self, mode=True):
        if not isinstance(mode, bool):
            raise ValueError(f'train: mode is a bool, got {mode!r}')
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                parameter.grad.detach().zero_()

    def apply(self, fn):
        """Call fn with each module, children first."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn):
        """Replace each parameter and buffer by fn of it; parameters remain the same objects."""
        for module in self.children():
            module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is None:
                continue
            new, grad = fn(parameter.detach()), parameter.grad
            if new.data_ptr() == parameter.data_ptr() and new.dtype is parameter.dtype:
                continue
            _C._replace_tensor(parameter, new)
            if grad is not None:
                parameter.grad = fn(grad.detach())
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = self.__dict__[name] = fn(buffer)
        return self

    def to(self, *args, **kwargs):
        """Convert parameters and buffers as Tensor.to() does: of a floating dtype to another one only."""
        def convert(t):
            new = t.to(*args, **kwargs)
            if new.dtype is t.dtype or t.dtype.is_floating_point or t.dtype.is_complex:
                return new
            return t.to(new.device)

        dtype = _C.empty([0]).to(*args, **kwargs).dtype
        if not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f'Module.to: a module has floating dtypes, got {dtype}')
        return self._apply(convert)

    def _to_dtype(self, dtype):
        return self._apply(lambda t: t.to(dtype) if t.dtype.is_floating_point else t)

    def float(self):
        return self._to_dtype(_C.float32)

    def double(self):
        return self._to_dtype(_C.float64)

    def half(self):
        return self._to_dtype(_C.float16)

    def bfloat16(self):
        return self._to_dtype(_C.bfloat16)

    def type(self, dst_type):
        return self._apply(lambda t: t.to(dst_type))

    def cpu(self):
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None):
        return self._apply(lambda t: t.cuda(device))

    def share_memory(self):
        """Move parameters, their gradients and buffers to memory that processes can share, in place. Each process
        counts its own changes of them only: others may train meanwhile (Hogwild)."""
        for t in itertools.chain(self.parameters(), self.buffers()):
            t.share_memory_().count_own_writes_()
            if t.grad is not None:
                t.grad.share_memory_()
        return self

    # ---- text ----

    def extra_repr(self):
        """The options of the module as repr() shows them."""
        return ''

    def _get_name(self):
        return type(self).__name__

    def __repr__(self):
        lines = [f'({name}): ' + repr(module).replace('\n', '\n  ') for name, module in self._modules.items()]
        extra = self.extra_repr()
        if not lines:
            return f'{self._get_name()}({extra})'
        if extra:
            lines.insert(0, extra)
        return f'{self._get_name()}(\n  ' + '\n  '.join(lines) + '\n)'

    def __dir__(self):
        return sorted(set(object.__dir__(self)))


class _IncompatibleKeys(namedtuple('IncompatibleKeys', ['missing_keys', 'unexpected_keys'])):
    def __repr__(self):
        return super().__repr__() if any(self) else '<All keys matched successfully>'
