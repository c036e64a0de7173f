"""When it pays to protect a page of generated code."""

from __future__ import annotations

from livepro.engines.translate.coherence.lasting import Lasting

PAGE = 7


def test_a_page_that_nobody_is_known_to_write_to_is_protected() -> None:
    assert Lasting().pays(PAGE, 1.0, 1.0)


def test_a_page_written_to_at_every_safepoint_pays_if_it_is_executed_enough() -> None:
    """Trusted for 20 ms each time: 10 million executions a second and more are worth a write, and
    one million are not."""
    lasting, now = Lasting(), 100.0
    for _ in range(20):
        lasting.written(PAGE, now, now - 0.02)
        now += 0.02
    assert lasting.pays(PAGE, now, 1e7)
    assert not lasting.pays(PAGE, now, 1e6)
    assert lasting.pays(PAGE + 1, now, 1e6)


def test_a_page_is_tried_again_after_a_while() -> None:
    lasting = Lasting()
    for _ in range(20):
        lasting.written(PAGE, 100.0, 100.0)
    assert not lasting.pays(PAGE, 100.5, 1e6)
    assert lasting.pays(PAGE, 101.0, 1e6)
    lasting.written(PAGE, 111.0, 101.0)  # and it has stayed as it was
    assert lasting.pays(PAGE, 111.0, 1e6)


def test_what_could_not_be_protected_is_left_alone() -> None:
    lasting = Lasting()
    lasting.refused(PAGE, 100.0)
    assert not lasting.pays(PAGE, 129.0, 1e9)
    assert lasting.pays(PAGE, 131.0, 1e9)
