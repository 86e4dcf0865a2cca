"""Which BLAS kernel a node uses is a fact of it, and confounds where it differs between topologies."""

from __future__ import annotations

from dataclasses import replace

from made_up import a_facts, made_up
from threadpoolctl import threadpool_info

from bench import analysis
from bench.cluster.probe.native import libraries, variables

OPENBLAS = {
    "user_api": "blas",
    "internal_api": "openblas",
    "num_threads": 2,
    "version": "0.3.31",
    "threading_layer": "pthreads",
    "architecture": "SkylakeX",
}
OPENMP = {"user_api": "openmp", "internal_api": "openmp", "num_threads": 2, "version": None}


def test_a_library_is_named_with_its_version_and_the_kernel_it_chose() -> None:
    assert libraries([OPENMP, OPENBLAS, OPENBLAS]) == {"BLAS": "openblas 0.3.31 SkylakeX, pthreads"}
    assert libraries([{"user_api": "blas", "internal_api": "mkl", "version": "2026.0"}]) == {"BLAS": "mkl 2026.0"}
    assert libraries([OPENMP]) == {}


def test_what_this_process_has_loaded_is_what_is_told() -> None:
    told = libraries()["BLAS"]
    for pool in threadpool_info():
        if pool["user_api"] == "blas":
            assert pool["internal_api"] in told
            assert str(pool.get("architecture", "")) in told


def test_the_variables_of_native_libraries_are_told_but_for_the_numbers_of_threads() -> None:
    environment = {
        "OPENBLAS_CORETYPE": "Haswell",
        "OMP_PROC_BIND": "close",
        "OMP_NUM_THREADS": "2",
        "MKL_NUM_THREADS": "2",
        "OMP_THREAD_LIMIT": "2",
        "KMP_DUPLICATE_LIB_OK": "True",
        "HOME": "/root",
    }
    assert variables(environment) == {"OMP_PROC_BIND": "close", "OPENBLAS_CORETYPE": "Haswell"}


def test_another_kernel_on_one_topology_takes_the_verdict_away() -> None:
    session, runs = made_up(cells=1)
    for of_multi, refused in (("SkylakeX", False), ("Haswell", True)):
        changed = [
            replace(
                run,
                facts=a_facts(
                    run.spec.topology,
                    settings={
                        "BLAS": f"openblas 0.3.31 {of_multi if run.spec.topology.name == 'multi' else 'SkylakeX'}"
                    },
                ),
            )
            for run in runs
        ]
        report = analysis.build(session, changed)
        headline = report.cells[0].headline
        assert headline is not None
        assert headline.comparison is not None
        assert headline.comparison.refused is refused
        assert any("BLAS differs" in caveat.text for caveat in report.caveats) is refused
