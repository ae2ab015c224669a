"""How gradients are split between all-reduces."""
