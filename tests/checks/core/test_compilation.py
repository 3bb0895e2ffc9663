"""Where compiled programs are kept, and that nothing that lies there changes a result. Oracle: JAX's own counters."""

import json
import os
import subprocess
import sys
from pathlib import Path

from sgmcmc_verification.checks.core import compilation
from sgmcmc_verification.checks.core.compilation import OFF, VARIABLE, cache_folder, is_due, machine, prune

PROGRAM = """
import json, os, resource, sys
if "LIMIT" in os.environ:  # files end after so many bytes, as on a full disk
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(os.environ["LIMIT"]),) * 2)
import jax, jax.numpy as jnp
from sgmcmc_verification.checks.core.compilation import configure

hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event.endswith("cache_hits")))
jax.config.update("jax_enable_x64", True)
folder = configure(sys.argv[1] if len(sys.argv) > 1 else None)
value = jax.jit(lambda x: jnp.sum(jnp.sin(x) @ x.T))(jnp.arange(12.0).reshape(3, 4))
print(json.dumps([str(folder), float(value).hex(), sum(hits)]))
"""


def compiled(*arguments: str, **variables: str) -> tuple[str, str, int]:
    """The folder, the value and the number of programs that were found there, in a process of its own."""
    environment = {k: v for k, v in os.environ.items() if k not in (VARIABLE, "JAX_COMPILATION_CACHE_DIR")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, *arguments],
        env=environment | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(json.loads(done.stdout.splitlines()[-1]))


def test_the_folder_is_the_option_then_the_variable_then_jaxs_own_then_the_users_cache(monkeypatch, tmp_path):
    for name in (VARIABLE, "JAX_COMPILATION_CACHE_DIR", "SGMCMC_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SGMCMC_CACHE_DIR", str(tmp_path / "user"))
    assert cache_folder(None) == tmp_path / "user" / "compiled" / machine()
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "jax"))
    assert cache_folder(None) is None
    monkeypatch.setenv(VARIABLE, str(tmp_path / "named"))
    assert cache_folder(None) == tmp_path / "named" / machine()
    assert cache_folder(str(tmp_path / "given")) == tmp_path / "given" / machine()
    assert cache_folder(OFF) == OFF
    monkeypatch.setenv(VARIABLE, OFF)
    assert cache_folder(None) == OFF
    assert cache_folder(str(tmp_path / "given")) == tmp_path / "given" / machine()


def test_a_second_process_finds_what_the_first_compiled_and_damage_costs_a_compilation_only(tmp_path):
    folder, value, hits = compiled(str(tmp_path))
    assert folder == str(tmp_path / machine())
    entries = sorted(Path(folder).glob("*-cache"))
    assert entries
    assert hits == 0
    assert compiled(str(tmp_path)) == (folder, value, len(entries))
    for content in (b"", entries[0].read_bytes()[:100], b"\x00" * 1000):  # empty, truncated, foreign
        for entry in entries:
            entry.write_bytes(content)
        assert compiled(str(tmp_path)) == (folder, value, 0)


def test_another_jaxlibs_entries_are_never_looked_at(tmp_path):
    foreign = tmp_path / "jaxlib-0.0.1-0123456789ab"
    foreign.mkdir()
    (foreign / "program-cache").write_bytes(b"of another version")
    folder, _, hits = compiled(str(tmp_path))
    assert Path(folder) != foreign
    assert hits == 0
    assert (foreign / "program-cache").read_bytes() == b"of another version"


def test_a_folder_that_cannot_be_written_to_and_off_leave_the_result_as_it_is(tmp_path):
    _, value, _ = compiled(str(tmp_path / "good"))
    assert compiled("/proc/no-such-folder") == ("None", value, 0)
    (tmp_path / "file").write_text("")
    assert compiled(str(tmp_path / "file")) == ("None", value, 0)
    assert compiled(OFF, JAX_COMPILATION_CACHE_DIR=str(tmp_path / "jax")) == ("None", value, 0)
    assert not (tmp_path / "jax").exists()
    assert compiled(**{VARIABLE: OFF}) == ("None", value, 0)
    kept = compiled(str(tmp_path / "good"), **{VARIABLE: OFF})  # the option is said first
    assert kept[1:] == (value, len(list((tmp_path / "good" / machine()).glob("*-cache"))))


def test_a_full_disk_leaves_the_result_as_it_is(tmp_path):
    folder, value, _ = compiled(str(tmp_path / "good"))
    assert compiled(str(tmp_path / "full"), LIMIT="200") == (folder.replace("good", "full"), value, 0)
    assert {f.stat().st_size for f in (tmp_path / "full" / machine()).glob("*-cache")} <= {200}
    assert compiled(str(tmp_path / "full")) == (folder.replace("good", "full"), value, 0)


def test_a_folder_is_brought_back_to_its_size_and_what_was_used_last_stays(tmp_path):
    for age, name in enumerate("abcd"):
        (tmp_path / name).write_bytes(b"x" * 100)
        os.utime(tmp_path / name, (10_000 - age, 10_000 - age))
    prune(tmp_path, 400)
    assert len(list(tmp_path.iterdir())) == 4
    prune(tmp_path, 250)
    assert sorted(f.name for f in tmp_path.iterdir()) == ["a", "b"]
    prune(tmp_path, 0)
    assert not list(tmp_path.iterdir())
    assert compilation.MOST_BYTES > 100 * 2**20


def test_a_folder_is_looked_through_once_an_hour(tmp_path):
    stamp = tmp_path / "pruned"
    assert [is_due(stamp) for _ in range(3)] == [True, False, False]
    os.utime(stamp, (0, 0))
    assert is_due(stamp)
    assert not is_due(stamp)
    assert is_due(tmp_path / "absent" / "pruned")  # where nothing can be written it is due
    assert is_due(tmp_path / "absent" / "pruned")


OF_SOMEBODY = """
import json, os, sys
import jax
from sgmcmc_verification import check_sampler

def settings():
    return {name: value for name, value in jax.config.values.items() if isinstance(value, int | float | str | None)}

before = settings()
check_sampler("sgld", targets=["double-well"], tiers=["contract"])
print(json.dumps([{k: v for k, v in settings().items() if v != before[k]}, jax.numpy.zeros(1).dtype.name]))
"""


def test_in_somebody_elses_process_programs_are_kept_and_settings_are_as_they_were(tmp_path):
    for folder, variable in ((tmp_path / "ours", VARIABLE), (tmp_path / "theirs", "JAX_COMPILATION_CACHE_DIR")):
        environment = {k: v for k, v in os.environ.items() if k not in (VARIABLE, "JAX_COMPILATION_CACHE_DIR")}
        environment |= {variable: str(folder), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        command = [sys.executable, "-W", "ignore", "-c", OF_SOMEBODY]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout.splitlines()[-1]) == [{}, "float32"]
        assert any(folder.rglob("*-cache")), variable
