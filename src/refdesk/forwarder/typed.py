"""What the forwarder needs from `typing`, whose import would take half a megabyte in each of its many processes."""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers treat it as true

if TYPE_CHECKING:
    from typing import NamedTuple, cast
else:
    from operator import itemgetter

    def cast(_kind, value):
        """Return the value; the kind is only for type checkers."""
        return value

    class NamedTuple(tuple):
        """A tuple whose fields have the names that its class annotates and the defaults that the class sets."""

        __slots__ = ()

        def __init_subclass__(cls):
            cls._fields = tuple(cls.__annotations__)
            cls._defaults = {name: cls.__dict__[name] for name in cls._fields if name in cls.__dict__}
            for place, name in enumerate(cls._fields):
                setattr(cls, name, property(itemgetter(place)))

        def __new__(cls, *values, **named):
            """Return a tuple with these field values, given in order or by name."""
            given = {**cls._defaults, **dict(zip(cls._fields, values, strict=False)), **named}
            if len(values) > len(cls._fields) or given.keys() != set(cls._fields):
                raise TypeError(f"{cls.__name__} has the fields {', '.join(cls._fields)}")
            return tuple.__new__(cls, map(given.__getitem__, cls._fields))


__all__ = ["NamedTuple", "cast"]
