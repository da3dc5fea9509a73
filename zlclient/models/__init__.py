"""The catalogue: which models exist, what each accepts, and what the aliases `auto` and `legacy` mean."""

from .catalogue import Alias, Catalogue, Model, ProviderModels

__all__ = ["Alias", "Catalogue", "Model", "ProviderModels"]
