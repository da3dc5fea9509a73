"""The rules, one module a family."""

from . import (
    cache,
    file,
    front_matter,
    house,
    markup,
    model,
    model_wording,
    output_format,
    safety,
    scope,
    structure,
    template,
    wording,
)

FAMILIES = (
    file,
    safety,
    scope,
    template,
    front_matter,
    structure,
    markup,
    wording,
    model,
    model_wording,
    cache,
    output_format,
    house,
)
