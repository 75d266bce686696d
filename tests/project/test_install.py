"""The package is built, and works where nothing but a wheel of it is installed."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

import vstatkit as vs

ROOT = Path(__file__).parents[2]
TOOLS = ("build", "Cython", "setuptools", "twine")
DEPENDENCIES = ("joblib", "matplotlib", "patsy", "sklearn", "statsmodels", "tqdm")

pytestmark = pytest.mark.install


def run(*command, **options):
    environment = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(one) for one in command],
        capture_output=True,
        text=True,
        check=False,
        **{"env": environment, **options},
    )
    assert done.returncode == 0, (
        f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    )
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """An archive of the sources, and a wheel built from that archive alone."""
    missing = [name for name in TOOLS if importlib.util.find_spec(name) is None]
    if missing:
        reason = f"not installed: {', '.join(missing)}"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    folder = tmp_path_factory.mktemp("built")
    kept = shutil.ignore_patterns(
        ".*_cache", ".git", ".hypothesis", ".venv", "__pycache__", "*.egg-info",
        "*.so", "_build", "build", "checkpoints", "dist",
    )  # fmt: skip
    shutil.copytree(ROOT, folder / "sources", ignore=kept)
    out = folder / "out"
    how = ["-m", "build", "--no-isolation", "--outdir", out, folder / "sources"]
    run(sys.executable, *how, cwd=folder)
    (archive,) = out.glob("*.tar.gz")
    (wheel,) = out.glob("*.whl")
    return SimpleNamespace(archive=archive, wheel=wheel, folder=folder)


def files_of(*folders, endings):
    return {
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.name.endswith(endings) and "__pycache__" not in path.parts
        if "_build" not in path.parts and "checkpoints" not in path.parts
    }


def test_the_wheel_serves_every_python_from_the_oldest_on(built):
    name = rf"vstatkit-{re.escape(vs.__version__)}-cp311-abi3-\w+\.whl"
    assert re.fullmatch(name, built.wheel.name)
    with zipfile.ZipFile(built.wheel) as wheel:
        compiled = [one for one in wheel.namelist() if "native/_engine." in one]
        about = wheel.read(f"vstatkit-{vs.__version__}.dist-info/WHEEL").decode()
    assert [one for one in compiled if not one.endswith(".pyx")] in (
        ["vstatkit/native/_engine.abi3.so"],
        ["vstatkit/native/_engine.pyd"],
    )
    assert "Root-Is-Purelib: false" in about
    assert "Tag: cp311-abi3-" in about


def test_the_wheel_has_all_modules_and_data_and_nothing_else(built):
    with zipfile.ZipFile(built.wheel) as wheel:
        held = set(wheel.namelist())
    kinds = (".py", ".R", ".css", ".json.gz", "py.typed")
    assert files_of("vstatkit", "r_bridge", endings=kinds) <= held
    assert files_of("vstatkit/studies/printed", endings=("",)) - held == set()
    tops = {one.split("/")[0] for one in held}
    assert tops == {"vstatkit", "r_bridge", f"vstatkit-{vs.__version__}.dist-info"}
    assert not [one for one in held if one.endswith((".cpp", ".so.dSYM"))]


def test_the_archive_has_all_that_tests_and_pages_need(built):
    with tarfile.open(built.archive) as archive:
        held = {one.partition("/")[2] for one in archive.getnames()}
    wanted = files_of("tests", "docs", "benchmarks", endings=(".py", ".md", ".gz"))
    wanted |= {"tests/run", "README.md", "LICENSE", "CONTRIBUTING.md", "setup.py"}
    wanted |= files_of("vstatkit/native", endings=(".pyx", ".hpp"))
    assert wanted <= held
    assert not [one for one in held if one.endswith((".so", ".cpp", ".pyc"))]


def test_the_description_is_readable_where_packages_are_listed(built):
    said = run(
        sys.executable, "-m", "twine", "check", "--strict", built.archive, built.wheel
    )
    assert said.count("PASSED") == 2


def installed(python, folder, built, lent):
    """Install the wheel where nothing is; dependencies are lent, not installed."""
    run(python, "-m", "venv", "--without-pip", folder)
    inside = run(
        folder / "bin" / "python",
        "-c",
        "import sysconfig; print(sysconfig.get_path('purelib'))",
    )
    place = Path(inside.strip())
    run(
        sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet",
        "--python", folder / "bin" / "python", "install",
        "--no-deps", "--no-index", built.wheel,
    )  # fmt: skip
    (place / "lent.pth").write_text("\n".join(lent), encoding="utf-8")
    return folder / "bin"


@pytest.mark.skipif(os.name == "nt", reason="the layout of environments is another")
def test_the_wheel_works_in_a_clean_environment(built, tmp_path):
    lent = [one for one in sys.path if one.endswith("-packages")]
    bin_folder = installed(sys.executable, tmp_path / "clean", built, lent)
    vs.datasets.mars(60, rng=1).to_csv(tmp_path / "data.csv", index=False)
    options = ["y ~ x1 + x2", "data.csv", "--B", "40", "--seed", "1"]
    found = run(bin_folder / "vstatkit", "fit", *options, cwd=tmp_path)
    code = "import sys; from vstatkit.cli import main; sys.exit(main(sys.argv[1:]))"
    wanted = run(sys.executable, "-c", code, "fit", *options, cwd=tmp_path)
    assert found == wanted
    assert run(bin_folder / "vstatkit", "--version").strip() == vs.__version__
    where = "import vstatkit.native._engine as one; print(one.__file__)"
    place = run(bin_folder / "python", "-c", where, cwd=tmp_path)
    assert place.startswith(str(tmp_path / "clean"))


@pytest.mark.skipif(os.name == "nt", reason="the layout of environments is another")
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_the_same_wheel_works_in_other_pythons(built, tmp_path, version):
    """Where such a Python is found, with the packages that vstatkit needs."""
    python = shutil.which(f"python{version}")
    if python is None:
        pytest.skip(f"there is no python{version} here")
    needs = f"import sys, {', '.join(DEPENDENCIES)}; print('\\n'.join(sys.path))"
    asked = subprocess.run(
        [python, "-c", needs], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    if asked.returncode:
        pytest.skip(f"python{version} lacks packages that vstatkit needs")
    lent = [one for one in asked.stdout.split("\n") if one.endswith("-packages")]
    bin_folder = installed(python, tmp_path / "clean", built, lent)
    code = (
        "import vstatkit as vs; data = vs.datasets.mars(60, rng=1); "
        "print(*vs.fit('y ~ x1', data, B=40, rng=1).params)"
    )
    found = float(run(bin_folder / "python", "-c", code, cwd=tmp_path))
    data = vs.datasets.mars(60, rng=1)
    wanted = vs.fit("y ~ x1", data, B=40, rng=1).params.item()
    assert found == pytest.approx(wanted, rel=1e-12)  # numpy may be another one


FLOOR = re.compile(r"([\w-]+)>=([\d.]+)")

SMOKE = """
import matplotlib
matplotlib.use("agg")
import numpy as np, vstatkit as vs
data = vs.datasets.mars(80, rng=1)
data["g"] = np.where(data["x3"] > 0.5, "a", "b")
res = vs.fit("y ~ x1 + log(x2) + g", data, B=60, rng=1)
assert "Forest Results" in str(res.summary())
assert len(res.avg_effects().frame) == 3
res.plot()
res.get_prediction(data.head()).summary_frame()
X = data[["x1", "x2"]]
forest = vs.ForestRegressor(60, random_state=1).fit(X, data["y"])
assert (forest.predict(X, return_std=True)[1] > 0).all()
forest.summary()
vs.fit("g ~ x1", data, kernel="logit", B=20, rng=1).summary()
"""

OLDEST_TESTS = (
    "formula/test_unsupported_notation",
    "results/test_results",
    "storage/test_results_file",
    "results/test_summary",
)
"""Files that are run with the oldest packages: formulas, tables, tests, pickles."""


def declared_floors():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = project["project"]["dependencies"]
    floors = [FLOOR.fullmatch(one) for one in declared]
    assert all(floors), f"every dependency needs an oldest version: {declared}"
    oldest = project["project"]["requires-python"].removeprefix(">=")
    return {one[1]: one[2] for one in floors}, oldest


def skipped(reason):
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)


@pytest.mark.skipif(os.name == "nt", reason="the layout of environments is another")
def test_the_oldest_declared_versions_work(built, tmp_path):
    """The oldest Python with the oldest of every package, from their registry."""
    floors, version = declared_floors()
    python = shutil.which(f"python{version}")
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        python = sys.executable
    if python is None:
        skipped(f"there is no python{version} here")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    small = [*pip, "download", "--no-deps", "-d", tmp_path, f"tqdm=={floors['tqdm']}"]
    if subprocess.run(small, capture_output=True, check=False).returncode:
        skipped("the registry of packages cannot be reached")
    run(python, "-m", "venv", "--without-pip", tmp_path / "oldest")
    inside = tmp_path / "oldest" / "bin" / "python"
    exactly = [f"{name}=={floor}" for name, floor in floors.items()]
    run(
        *pip, "--python", inside, "install", "--only-binary", ":all:",
        built.wheel, *exactly, "pytest", "hypothesis",
    )  # fmt: skip
    run(inside, "-c", SMOKE, cwd=tmp_path)
    shutil.copytree(ROOT / "tests", tmp_path / "tests")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    run(
        *(inside, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        # Old packages warn of each other.
        *("-o", "addopts=--strict-markers", "-o", "filterwarnings=default"),
        *(f"tests/{name}.py" for name in OLDEST_TESTS),
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
