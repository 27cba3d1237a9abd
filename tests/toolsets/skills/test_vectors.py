"""The vectors by which skills are found."""

from __future__ import annotations

import numpy as np
import pytest

from refdesk.toolsets.skills.vectors import draw_together, to_vector


def test_the_vector_of_one_case_alone_stays_as_it_is() -> None:
    alone = to_vector([3.0, 4.0])
    assert draw_together([alone]) == [alone]
    assert draw_together([]) == []


def test_each_of_several_is_drawn_half_way_to_the_mean_of_all() -> None:
    one, other, odd = to_vector([1.0, 0.0, 0.0]), to_vector([1.0, 0.0, 0.0]), to_vector([0.0, 1.0, 0.0])
    drawn = draw_together([one, other, odd])
    assert [np.linalg.norm(vector) for vector in drawn] == pytest.approx([1.0] * 3)
    np.testing.assert_allclose(drawn[2], to_vector([2 / 3, 1 + 1 / 3, 0.0]), rtol=1e-6)
    # Which case is nearest to a question stays the same between those that say the same; the odd one speaks for all.
    assert drawn[2] @ one > odd @ one
    assert drawn[0] @ one > drawn[2] @ one
