"""MOSAIC as a sampler of imbalanced-learn."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from sklearn.base import OneToOneFeatureMixin
from sklearn.utils import InputTags, Tags

from mosaic.estimators.selector import Representatives


@dataclass
class SamplerTags:
    """What imbalanced-learn asks of a sampler: whether it has ``sample_indices_``."""

    sample_indices: bool = True


@dataclass
class SamplerInputTags(InputTags):
    """Input tags with the one that imbalanced-learn adds to those of scikit-learn."""

    dataframe: bool = True


@dataclass
class TagsOfSampler(Tags):
    """Tags with those that imbalanced-learn adds to those of scikit-learn."""

    sampler_tags: SamplerTags = field(default_factory=SamplerTags)


class MOSAICSampler(OneToOneFeatureMixin, Representatives):
    """MOSAIC as a sampler for imbalanced-learn pipelines, which refuse samplers that are also transformers.

    Parameters and attributes are those of ``MOSAIC``; the methods are ``fit``, ``fit_resample``, ``select``, ``get_support``,
    ``explain`` and ``rethreshold``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mosaic import MOSAICSampler
    >>> X, y = load_iris(return_X_y=True)
    >>> MOSAICSampler(30).fit_resample(X, y)[0].shape
    (30, 4)
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = SamplerInputTags(**_values(tags.input_tags))
        return TagsOfSampler(**_values(tags))


def _values(tags: Any) -> dict[str, Any]:
    return {item.name: getattr(tags, item.name) for item in fields(tags)}
