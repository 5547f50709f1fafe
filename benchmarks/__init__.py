"""How fast: the published loop, what a recipe runs, and what the machine can do, side by side."""
