"""The paper's propositions, corollary and lemmas as functions (see docs/theory.md)."""
# ruff: noqa: F403

from meada.theory.bounds import *
from meada.theory.duality import *
from meada.theory.information import *
