"""What a machine tells of its settings, and that what it does not tell is no error."""

from __future__ import annotations

from pathlib import Path

from bench.cluster.probe.machine import FILES, settings, speed


def a_machine(root: Path, **files: str) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_what_the_kernel_tells_is_read_and_of_a_choice_the_one_that_is_taken(tmp_path: Path) -> None:
    root = a_machine(
        tmp_path,
        **{
            FILES["transparent huge pages"]: "always [madvise] never\n",
            FILES["clock source"]: "tsc\n",
            FILES["CPU governor"]: "powersave\n",
            "proc/cpuinfo": "model name\t: EPYC\nflags\t\t: fpu avx512f\n",
            "proc/swaps": "Filename Type Size\n/swapfile file 1024\n",
        },
    )
    found = settings(root)
    assert (found["transparent huge pages"], found["clock source"], found["CPU governor"], found["swap"]) == (
        "madvise",
        "tsc",
        "powersave",
        "on",
    )
    a_machine(root, **{"proc/cpuinfo": "flags\t\t: fpu avx2\n", "proc/swaps": "Filename Type Size\n"})
    assert settings(root)["CPU flags"] != found["CPU flags"]
    assert settings(root)["swap"] == "off"


def test_a_machine_without_cpufreq_or_any_such_file_is_no_error(tmp_path: Path) -> None:
    assert list(settings(tmp_path)) == ["CPUs of the machine"]


def test_the_speed_of_the_cpus_that_are_asked_about_is_their_mean_and_the_warmest_sensor_counts(tmp_path: Path) -> None:
    frequency = "sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq"
    a_machine(
        tmp_path,
        **{
            frequency.format(0): "2000000\n",
            frequency.format(1): "3000000\n",
            frequency.format(2): "800000\n",
            "sys/class/thermal/thermal_zone0/temp": "41000\n",
            "sys/class/thermal/thermal_zone1/temp": "67500\n",
        },
    )
    assert speed((0, 1), tmp_path) == {"cpu_mhz": 2500.0, "celsius": 67.5}


def test_a_machine_that_tells_no_frequency_and_no_warmth_is_no_error(tmp_path: Path) -> None:
    assert speed((0, 1), tmp_path) == {"cpu_mhz": None, "celsius": None}
