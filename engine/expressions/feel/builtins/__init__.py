"""THE table of the functions that FEEL brings along (DMN 1.3, 10.3.4), a module for each group."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from engine.expressions.feel.builtins.aggregate import AGGREGATE
from engine.expressions.feel.builtins.boolean import BOOLEAN
from engine.expressions.feel.builtins.context import CONTEXT
from engine.expressions.feel.builtins.conversion import CONVERSION
from engine.expressions.feel.builtins.list import LIST
from engine.expressions.feel.builtins.numeric import NUMERIC
from engine.expressions.feel.builtins.range import RANGE
from engine.expressions.feel.builtins.string import STRING
from engine.expressions.feel.builtins.temporal import TEMPORAL
from engine.expressions.feel.function import Builtin

BUILTINS: Mapping[str, Builtin] = MappingProxyType(
    {**CONVERSION, **BOOLEAN, **STRING, **LIST, **AGGREGATE, **NUMERIC, **TEMPORAL, **RANGE, **CONTEXT}
)
