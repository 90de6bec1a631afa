"""A graph's state: a TypedDict, a dataclass or a pydantic model, whose fields may carry a reducer. All three behave alike."""
# Values of any type pass here: what is not known of them is the point.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticUndefined
from typing_extensions import is_typeddict

from ledgergraph.schemas import codec, reducers, registry
from ledgergraph.schemas.checkable import checkable
from ledgergraph.schemas.copying import IMMUTABLE, fresh
from ledgergraph.schemas.errors import GraphError, InvalidUpdateError, InvalidValue, UnknownField
from ledgergraph.schemas.graph import FieldSpec

EMPTY: Mapping[type, Any] = {list: list, dict: dict, set: set, frozenset: frozenset, tuple: tuple, int: int, float: float, str: str,
                             bool: bool, bytes: bytes}
"""What a field with a reducer begins as, by its type."""
MISSING = dataclasses.MISSING
_STRICT = ConfigDict(strict=True, arbitrary_types_allowed=True)


class Field:
    """A field, and how its updates are checked."""

    __slots__ = ("adapter", "exact", "make", "spec", "wanted")

    def __init__(self, name: str, annotation: Any, default: Callable[[], Any] | None) -> None:
        kind, metadata = _unwrapped(annotation)
        fold = next((m for m in reversed(metadata) if callable(m) and not isinstance(m, type)), None)
        self.make = default or (EMPTY.get(get_origin(kind) or kind) if fold is not None else None)
        reducer = reducers.name_of(fold) if fold is not None else None
        update_kind = kind if fold is None else _update_kind(fold, kind)
        self.wanted = kind_text(update_kind)
        self.spec = FieldSpec(name, kind_text(kind), reducer, _initial_text(self.make))
        self.exact = update_kind if update_kind in (str, int, bool, bytes) else None
        checked = [m for m in metadata if not callable(m)] if fold is None else []
        self.adapter = _adapter(Annotated[(update_kind, *checked)] if checked else update_kind)

    def check(self, value: Any, place: str) -> None:
        """Raises InvalidValue. Nothing is converted."""
        if self.exact is not None and type(value) is self.exact:
            return
        try:
            self.adapter.validate_python(value, strict=True)
        except ValidationError as e:
            first = e.errors(include_url=False, include_context=False)[0]
            path = "".join(f"[{p!r}]" for p in first["loc"] if not _is_note(p))
            shown = f"{first['msg']} (it is a {type(first['input']).__name__})"
            raise InvalidValue(place, self.spec.name, path, shown, self.wanted) from None


    def from_json(self, value: Any) -> Any:
        try:
            return self.adapter.validate_json(codec.encode(value), strict=True)
        except ValidationError:
            return value


class StateSchema:
    """The fields of a state's class."""

    def __init__(self, cls: type, fields: dict[str, Field]) -> None:
        self.cls, self._fields = cls, fields
        self.fields: dict[str, FieldSpec] = {n: f.spec for n, f in fields.items()}

    @classmethod
    def of(cls, state: type) -> StateSchema:
        """Raises GraphError for a class of another kind or with a reducer of other than two arguments."""
        if not (is_typeddict(state) or dataclasses.is_dataclass(state) or is_model(state)):
            raise GraphError(f"{state!r} is no state: give a TypedDict, a dataclass or a pydantic model, with a type for each field.")
        registry.register_annotations(state)
        defaults = dict(_defaults(state))
        try:
            hints = get_type_hints(state, include_extras=True)
        except NameError as e:
            raise GraphError(f"the state {state.__qualname__} has an annotation that cannot be read ({e}). Import what it names at run time, "
                             "at the top of its module.") from e
        if issubclass(state, BaseModel):
            hints = {n: hints[n] for n in state.model_fields}
        return cls(state, {n: Field(n, t, defaults.get(n)) for n, t in hints.items()})

    def initial(self) -> dict[str, Any]:
        """What the state begins with where nothing was written: defaults, and what reducers fold into."""
        return {n: f.make() for n, f in self._fields.items() if f.make is not None}

    def check(self, update: Any, *, place: str) -> dict[str, Any]:
        """The update as a mapping of fields. Raises InvalidUpdateError, UnknownField, InvalidValue."""
        out = self._mapping(update, place)
        for name, value in out.items():
            field = self._fields.get(name)
            if field is None:
                raise UnknownField(place, name, list(self._fields))
            field.check(value, place)
        return out

    def from_json(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """An update that came as JSON, with what the fields' types say in place of texts (a Decimal, a date). What does not fit is
        left as it is, for `check` to refuse."""
        return {n: self._fields[n].from_json(v) if n in self._fields else v for n, v in values.items()}

    def _mapping(self, update: Any, place: str) -> dict[str, Any]:
        if isinstance(update, Mapping):
            return dict(update)
        if isinstance(update, BaseModel):
            return {n: getattr(update, n) for n in type(update).model_fields if n in update.model_fields_set}
        if dataclasses.is_dataclass(update) and not isinstance(update, type):
            values = {f.name: getattr(update, f.name) for f in dataclasses.fields(update) if hasattr(update, f.name)}
            return {n: v for n, v in values.items() if n not in self._fields or not self._is_default(n, v)}
        raise InvalidUpdateError(f"{place}: an update is a mapping of the state's fields ({', '.join(self._fields)}), not a "
                                 f"{type(update).__name__}. Return a dict, a Command or None.")

    def _is_default(self, name: str, value: Any) -> bool:
        make = self._fields[name].make
        return make is not None and bool(make() == value)

    def encode_update(self, update: Mapping[str, Any], *, place: str) -> dict[str, bytes]:
        """Each field's bytes. Raises UnstorableValue with the path to what cannot be stored."""
        return {k: codec.encode(v, place=place, path=k) for k, v in update.items()}

    def view(self, values: Mapping[str, Any]) -> Any:
        """The state as a node receives it: its own, whatever it does to it."""
        if is_typeddict(self.cls):
            return OwnState(values)
        own = {k: fresh(v) for k, v in values.items() if k in self._fields}
        if issubclass(self.cls, BaseModel):
            return self.cls.model_construct(**own)
        out = object.__new__(self.cls)
        for k, v in own.items():
            object.__setattr__(out, k, v)
        return out


class OwnState(dict[str, Any]):
    """A state whose values are copied when they are first looked at: a node pays only for what it reads."""

    __slots__ = ("_shared",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._shared = {k for k, v in values.items() if type(v) not in IMMUTABLE}

    def __getitem__(self, key: str) -> Any:
        if key in self._shared:
            self._shared.discard(key)
            super().__setitem__(key, fresh(super().__getitem__(key)))
        return super().__getitem__(key)

    def __setitem__(self, key: str, value: Any) -> None:
        self._shared.discard(key)
        super().__setitem__(key, value)

    def __iter__(self) -> Iterator[str]:
        # Also what makes dict(state) and {**state} ask __getitem__.
        return super().__iter__()

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default

    def items(self) -> Any:
        self._own()
        return super().items()

    def values(self) -> Any:
        self._own()
        return super().values()

    def pop(self, key: str, *default: Any) -> Any:
        if key in self:
            self[key]
        return super().pop(key, *default)

    def popitem(self) -> tuple[str, Any]:
        self._own()
        return super().popitem()

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def copy(self) -> dict[str, Any]:
        return dict(self.items())

    def __reduce__(self) -> Any:
        return dict, (dict(self.items()),)

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def _own(self) -> None:
        for key in list(self._shared):
            self[key]


def kind_text(t: Any) -> str:
    """A type as text that is the same in every process and Python version."""
    if t is type(None) or t is None:
        return "None"
    if t is Any:
        return "Any"
    if t is ...:
        return "..."
    origin, args = get_origin(t), get_args(t)
    if origin is Annotated:
        return kind_text(args[0])
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, args))}]"
    if origin in (Union, types.UnionType):
        return " | ".join(kind_text(a) for a in args)
    if origin is not None:
        inner = ", ".join(f"[{', '.join(map(kind_text, a))}]" if isinstance(a, list) else kind_text(a) for a in args)
        return f"{kind_text(origin)}[{inner}]"
    if isinstance(t, type):
        return t.__qualname__ if t.__module__ in ("builtins", "collections.abc", "typing") else f"{t.__module__}.{t.__qualname__}"
    return str(t)


def _unwrapped(annotation: Any) -> tuple[Any, list[Any]]:
    """(type, metadata) without what says whether a key must be there."""
    metadata: list[Any] = []
    while get_origin(annotation) in (Annotated, NotRequired, Required):
        metadata = [*getattr(annotation, "__metadata__", ()), *metadata]
        annotation = get_args(annotation)[0]
    return annotation, metadata


def _update_kind(fold: Any, kind: Any) -> Any:
    """What an update of a reducer is: the annotation of its second argument; of `append`, an item; else the field's type."""
    if fold is reducers.append:
        return (get_args(kind) or (Any,))[0]
    if getattr(fold, "__module__", "") == reducers.__name__:
        return Any if fold is reducers.union else kind
    try:
        hints = get_type_hints(fold)
        names = list(fold.__code__.co_varnames[:fold.__code__.co_argcount])
        return hints.get(names[1], kind)
    except (AttributeError, IndexError, NameError, TypeError):
        return kind


def _adapter(kind: Any) -> TypeAdapter[Any]:
    kind = checkable(kind)
    try:
        return TypeAdapter(kind, config=_STRICT)
    except PydanticUserError:
        # A model, dataclass or TypedDict has a configuration of its own.
        return TypeAdapter(kind)


def _initial_text(make: Callable[[], Any] | None) -> str | None:
    if make is None:
        return None
    value = make()
    if not value and type(value) in EMPTY:
        return type(value).__name__
    return codec.encode(value, place="the state's schema", path="default").decode("ascii", "backslashreplace")


def is_model(state: Any) -> bool:
    return isinstance(state, type) and issubclass(state, BaseModel)


def _defaults(state: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    if is_typeddict(state):
        return
    if issubclass(state, BaseModel):
        for name, f in state.model_fields.items():
            if f.default is not PydanticUndefined or f.default_factory is not None:
                yield name, partial(f.get_default, call_default_factory=True, validated_data={})
        return
    for f in dataclasses.fields(state):
        if f.default_factory is not MISSING:
            yield f.name, f.default_factory
        elif f.default is not MISSING:
            yield f.name, partial(fresh, f.default)


def _is_note(part: Any) -> bool:
    """Whether a part of pydantic's path names a branch of a union, not a place in the value."""
    return isinstance(part, str) and (part.startswith(("list[", "dict[", "tuple[", "set[", "function-")) or part in
                                      ("str", "int", "float", "bool", "none", "bytes", "decimal", "date", "datetime"))
