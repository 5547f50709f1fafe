"""The CIFAR-10 policy of AutoAugment (Cubuk et al., 2019, Table 7 of their appendix).

Pairs of (operation, probability, magnitude from 0 to 9); an operation without a strength has 0.
"""

Step = tuple[str, float, int]

CIFAR10: tuple[tuple[Step, Step], ...] = (
    (("invert", 0.1, 0), ("contrast", 0.2, 6)),
    (("rotate", 0.7, 2), ("translate_x", 0.3, 9)),
    (("sharpness", 0.8, 1), ("sharpness", 0.9, 3)),
    (("shear_y", 0.5, 8), ("translate_y", 0.7, 9)),
    (("autocontrast", 0.5, 0), ("equalise", 0.9, 0)),
    (("shear_y", 0.2, 7), ("posterise", 0.3, 7)),
    (("colour", 0.4, 3), ("brightness", 0.6, 7)),
    (("sharpness", 0.3, 9), ("brightness", 0.7, 9)),
    (("equalise", 0.6, 0), ("equalise", 0.5, 0)),
    (("contrast", 0.6, 7), ("sharpness", 0.6, 5)),
    (("colour", 0.7, 7), ("translate_x", 0.5, 8)),
    (("equalise", 0.3, 0), ("autocontrast", 0.4, 0)),
    (("translate_y", 0.4, 3), ("sharpness", 0.2, 6)),
    (("brightness", 0.9, 6), ("colour", 0.2, 8)),
    (("solarise", 0.5, 2), ("invert", 0.0, 0)),
    (("equalise", 0.2, 0), ("autocontrast", 0.6, 0)),
    (("equalise", 0.2, 0), ("equalise", 0.6, 0)),
    (("colour", 0.9, 9), ("equalise", 0.6, 0)),
    (("autocontrast", 0.8, 0), ("solarise", 0.2, 8)),
    (("brightness", 0.1, 3), ("colour", 0.7, 0)),
    (("solarise", 0.4, 5), ("autocontrast", 0.9, 0)),
    (("translate_y", 0.9, 9), ("translate_y", 0.7, 9)),
    (("autocontrast", 0.9, 0), ("solarise", 0.8, 3)),
    (("equalise", 0.8, 0), ("invert", 0.1, 0)),
    (("translate_y", 0.7, 9), ("autocontrast", 0.9, 0)),
)
