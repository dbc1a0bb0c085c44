"""The boxes of a box plot, found again among the lines and patches that matplotlib drew."""

import math

# Points of an outline that is a line, without and with notches, which may reach beyond the quartiles.
OUTLINES = PLAIN, NOTCHED = (5, 11)


class Box:
    """Across is the axis of the categories, along that of the values."""

    def __init__(self, outline, height):
        across, along = outline
        self.left, self.right = across.min(), across.max()
        self.height = height
        self.center = (self.left + self.right) / 2
        # From the first quartile up one side, and from the third one down the other.
        half = NOTCHED // 2 if len(along) >= NOTCHED else PLAIN // 2
        self.first, self.third = along[0], along[half]
        self.median = None
        self.outliers = []

    def take(self, strokes, dots):
        """False if these lines do not make it a box with a median."""
        strokes = [(across, along, height) for across, along, height in strokes if self.below_or_above(across)]
        inner = [(height, abs(across[1] - across[0]), along[0]) for across, along, height in strokes
                 if along[0] == along[1] and across[0] != across[1] and self.first <= along[0] <= self.third]
        if not inner:
            return False
        # The cap of a whisker without length is not above the box, or else shorter; a line for the mean comes behind.
        above = [line for line in inner if line[0] > self.height]
        self.median = (above[0] if above else max(inner, key=lambda line: line[1]))[2]

        whiskers = [along for across, along, _ in strokes if across[0] == across[1] and self.touches(along)]
        self.low = min([self.first, *(along.min() for along in whiskers)])
        self.high = max([self.third, *(along.max() for along in whiskers)])

        self.outliers = [tidy(value) for across, along in dots if self.below_or_above(across) for value in along]
        for name in ("low", "first", "median", "third", "high"):
            setattr(self, name, tidy(getattr(self, name)))
        return True

    def below_or_above(self, across):
        return len(across) > 0 and self.left <= across.min() and across.max() <= self.right

    def touches(self, along):
        return math.isclose(along.max(), self.first) or math.isclose(along.min(), self.third)


def find_boxes(lines, patches):
    """(boxes, do they lie), or None."""
    data = [line.get_xydata().T for line in lines]
    strokes = [(*xy, line.get_zorder()) for xy, line in zip(data, lines) if len(xy[0]) == 2]
    # Medians and the marks of means are on top of all else.
    top = max((line.get_zorder() for line in lines), default=0)
    dots = [xy for xy, line in zip(data, lines) if line.get_linestyle() == "None" and line.get_zorder() < top]
    if patches:
        outlines = [(patch.get_path().vertices.T, patch.get_zorder()) for patch in patches]
    else:
        outlines = [(xy, line.get_zorder()) for xy, line in zip(data, lines)
                    if len(xy[0]) in OUTLINES and (xy[:, 0] == xy[:, -1]).all()]

    for lying in (False, True):
        def turn(pair):
            return pair[::-1] if lying else pair

        boxes = [Box(turn(xy), height) for xy, height in outlines]
        turned = [(*turn(xy), height) for *xy, height in strokes]
        if boxes and all(box.take(turned, [turn(xy) for xy in dots]) for box in boxes):
            return boxes, lying
    return None


def tidy(value):
    return float("%.12g" % value)
