"""Runs: recipes, folders, checkpoints and the training run itself."""
