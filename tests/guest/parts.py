"""What of the tests runs on the emulated machine: in parts, each on a machine of its own."""

from __future__ import annotations

from dataclasses import dataclass

ENGINES = ("step", "block", "translate")
STEP = "tests/engines/test_step.py::TestStep::"
BLOCK = "tests/engines/test_block.py::TestBlock::"
TRANSLATE_MORE = "tests/engines/test_translate.py::"
TRANSLATE = f"{TRANSLATE_MORE}TestTranslate::"
PROGRAMS = "tests/aarch64/test_programs.py::"

NEVER = (
    # Under the step engine, programs with libc (100,000 steps, a thousand or two a second), but
    # for one in tests/aarch64, one with intervals, and some with no more than libc's start-up.
    *(
        f"{STEP}{name}"
        for name in (
            "test_two_runs_of_a_dynamic_program_are_equal",
            "test_threads_have_their_own_counts",
            "test_threads_that_run_meanwhile",
            "test_many_short_threads",
            "test_processes_of_every_kind",
            "test_children_ignored",
            "test_children_of_a_process_whose_first_thread_has_ended",
            "test_behaves_as_without",
            "test_generated_code_and_signals_in_a_loop",
            "test_reset_snapshot_pause_and_resume",
            "test_arrivals_of_threads_that_are_called_away",
        )
    ),
    f"{BLOCK}test_agrees_with_the_step_engine[0]",  # [1000] is run
    # Nothing is kept on AArch64 yet: these would be the tests before them once more, twice.
    f"{TRANSLATE_MORE}TestTranslateKept",
    f"{TRANSLATE_MORE}test_kept_copies_do_not_lead_to_those_of_generated_code",
    # A signal takes longer here than the time until the next.
    f"{TRANSLATE_MORE}test_ten_thousand_signals_a_second",
)
"""Tests that an emulated machine is too slow for."""

_BOTH = (
    "test_two_runs_of_a_dynamic_program_are_equal",
    "test_threads_have_their_own_counts",  # in tests/aarch64, linked statically
    "test_many_short_threads",
    "test_children_ignored",
    "test_handlers_are_inherited[ignore]",
    "test_reset_snapshot_pause_and_resume[0]",
    "test_threads_that_run_meanwhile[0]",
    "test_arrivals_of_threads_that_are_called_away",
    *(f"test_behaves_as_without[{name}-" for name in ("dynamic", "timers", "job_control")),
    "test_generated_code_and_signals_in_a_loop[signal_flood-",
)
LONG = (
    *(f"{engine}{test}" for engine in (BLOCK, TRANSLATE) for test in _BOTH),
    f"{STEP}test_several_threads",
    f"{STEP}test_code_that_is_patched",
    f"{STEP}test_handlers_are_inherited",
    f"{BLOCK}test_agrees_with_the_step_engine",
    f"{BLOCK}test_snapshots_every_so_often",  # up to half a million stops
    f"{BLOCK}test_generated_code_and_signals_in_a_loop",
    f"{BLOCK}test_threads_that_run_meanwhile",
    f"{BLOCK}test_processes_of_every_kind",
    f"{BLOCK}test_actions_that_change_under_signals",
    f"{TRANSLATE}test_snapshots_every_so_often[threads_straight]",
    f"{BLOCK}test_several_threads",
    f"{BLOCK}test_children_of_a_process_whose_first_thread_has_ended",
    f"{BLOCK}test_behaves_as_without[jumps-",
    f"{BLOCK}test_stepped_onto_a_breakpoint_when_all_are_let_go",
    f"{TRANSLATE}test_reset_snapshot_pause_and_resume",
    f"{TRANSLATE}test_children_of_a_process_whose_first_thread_has_ended",
    f"{TRANSLATE}test_threads_that_run_meanwhile",
    f"{TRANSLATE}test_processes_of_every_kind",
    f"{TRANSLATE}test_handlers_are_inherited",
    f"{TRANSLATE}test_behaves_as_without[jumps-",
    f"{TRANSLATE_MORE}test_region_in_a_library_that_is_loaded_later",
    f"{TRANSLATE_MORE}TestTranslateEvicting",  # the contract once more, with a small cache
    *(f"{PROGRAMS}test_qemu_user_agrees[free_{name}--O0" for name in ("matrix", "recursion", "strings")),
)
"""Tests that are run with --all only: programs with libc (20 s to three minutes each under the block
and translate engines), where another engine's test, or another test of the engine, proves much the
same. (Deselected by how their names begin.)"""


@dataclass(frozen=True)
class Part:
    """Some tests, the processor that they are for, and what pytest is told besides."""

    name: str
    tests: tuple[str, ...]
    cpu: str = "cortex-a57"
    options: tuple[str, ...] = ()

    def command(self, everything: bool, share: tuple[int, int] = (0, 1)) -> list[str]:
        """What the guest is to run; without `everything`, not what is `LONG`; of the rest a share: which, of
        how many."""
        left_out = NEVER if everything else (*NEVER, *LONG)
        number, of = share
        report = ("-q", "-p", "guest.instant", "--tb=short", f"--part={number + 1}/{of}")
        if everything:
            report = (*report, "-m", "long or not long")
        return ["pytest", *report, *self.options, *self.tests, *(f"--deselect={test}" for test in left_out)]


PARTS = (
    *(Part(name, (f"tests/engines/test_{name}.py",)) for name in reversed(ENGINES)),
    Part(
        "programs",
        (
            "tests/aarch64",
            *(
                f"tests/attach/test_attach_{name}.py::Test{name.title()}Attach::{test}"
                for name in ENGINES
                for test in (
                    "test_counts_agree_with_the_loops_own_counter",
                    "test_process_that_ends_meanwhile",
                )
            ),
        ),
    ),
    Part(
        "compiled",
        (f"{TRANSLATE_MORE}TestTranslateCompiled::test_proved_counts",),
        options=("-m", "long or not long"),
    ),
    Part("places", ("tests/engines/test_translate_places.py",)),
    # Fixtures for what a Cortex-A57 has not.
    Part(
        "extensions",
        tuple(f"tests/engines/test_{name}.py" for name in ENGINES),
        "max",
        ("-k", "test_proved_counts and (lse or pauth or sve or accesses_extended)"),
    ),
    Part("streams", ("tests/events/test_streams.py",), "max", ("-m", "not long")),
)
"""The longest first."""
