"""Batched image corruptions of Hendrycks and Dietterich (2019): fifteen for tests, four for validation."""

from meada.corruptions.batch import CORRUPTIONS, SEVERITIES, VALIDATION, corrupt
from meada.corruptions.constants import CIFAR, IMAGENET, table_for
from meada.corruptions.weather import frost_source

__all__ = ["CIFAR", "CORRUPTIONS", "IMAGENET", "SEVERITIES", "VALIDATION", "corrupt", "frost_source", "table_for"]
