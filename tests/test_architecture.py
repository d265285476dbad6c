"""The architecture, checked by reading the code: one adapter per external dependency, imports in one direction.

An adapter is the only file that may use its dependency, so there is one place to read or change. Also checked: the
length of functions, and words that plain English does not need.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("headwind", "impair", "client", "browsers", "nginx", "servers")
FILES = [ROOT / "lab.py", *(file for name in (*PACKAGES, "bench") for file in sorted((ROOT / name).rglob("*.py")))]
FUNCTION_LINES = 45  # "about 40", its docstring not counted
NOUNS = {
    "impair.bounds", "impair.capabilities", "impair.distribution", "impair.messages", "impair.netem_options",
    "impair.pcapng", "impair.profile", "impair.queue_options", "impair.queues", "impair.trace", "impair.wire",
}  # fmt: skip


def module_name(file: Path) -> str:
    """`headwind.report` for headwind/report/__init__.py, `headwind.model` for headwind/model.py."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(file): file for file in FILES}


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(), str(file))


def called(call: ast.Call) -> str:
    """The last part of the called name: `run` for subprocess.run(...)."""
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def text_of(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def ancestors(module: str) -> list[str]:
    """The packages that a module lies in: `headwind` and `headwind.report` for `headwind.format`."""
    parts = module.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


@cache
def imports(file: Path) -> frozenset[str]:
    """Full names of all modules that a file imports, wherever in it, also by `import_module("name")`."""
    found = set()
    for node in ast.walk(tree(file)):
        match node:
            case ast.Import(names=names):
                found |= {alias.name for alias in names}
            case ast.ImportFrom(module=module, level=level, names=names):
                package = file.relative_to(ROOT).parts[:-level] if level else ()
                base = ".".join((*package, *filter(None, [module])))
                inside = {f"{base}.{alias.name}" for alias in names} & MODULES.keys()
                found |= inside if len(inside) == len(names) else inside | {base}
            case ast.Call(args=[first, *_]) if called(node) in ("import_module", "__import__"):
                found.add(text_of(first))
    packages = {package for name in found for package in ancestors(name)}  # Python imports these first
    return frozenset(found | (packages & MODULES.keys()) - {module_name(file), *ancestors(module_name(file))})


@cache
def reach(module: str) -> frozenset[str]:
    """The project's modules that importing `module` may bring in, itself included."""
    found, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name in MODULES and name not in found:
            found.add(name)
            waiting.extend(imports(MODULES[name]))
    return frozenset(found)


def inside(names: Iterable[str], *packages: str) -> set[str]:
    """The names that are one of the packages, or in one."""
    return {name for name in names if any(name == package or name.startswith(f"{package}.") for package in packages)}


def runs(file: Path, program: str) -> bool:
    """True when a command in the file begins with `program`: `["docker", ...]`, `run("docker ...")`."""
    for node in ast.walk(tree(file)):
        match node:
            case ast.List(elts=[first, *_]) | ast.Tuple(elts=[first, *_]):
                words = text_of(first).split()
            case ast.Call(args=[first, *_]) if called(node) in (
                "run", "Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput", "system", "popen",
                "execv", "execvp", "execlp", "spawnvp", "create_subprocess_exec", "create_subprocess_shell", "split",
            ):  # fmt: skip
                words = text_of(first).split()
            case _:
                continue
        if words and Path(words[0]).name == program:
            return True
    return False


@pytest.mark.parametrize(
    ("dependency", "adapter"),
    [
        ("pyroute2", "impair/router/netem.py"),
        ("yaml", "headwind/matrix/reader.py"),
        ("sqlite3", "headwind/run/journal.py"),
        ("pycurl", "client/curl.py"),
        ("distributed", "headwind/cluster/connection.py"),
        ("dask", "headwind/cluster/connection.py"),
    ],
)
def test_an_external_library_is_imported_by_its_adapter_only(dependency: str, adapter: str) -> None:
    users = [str(file.relative_to(ROOT)) for file in FILES if inside(imports(file), dependency)]
    assert users == [adapter], f"{dependency} may be imported in {adapter} only"


def test_all_output_goes_through_one_function_and_one_console() -> None:
    """Names and messages of others are printed without anything that a terminal would obey."""
    users = {
        str(file.relative_to(ROOT))
        for file in FILES
        if not file.is_relative_to(ROOT / "bench") and not inside({module_name(file)}, *PACKAGES[1:])
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Call)
        and (
            "print" in {each.id for each in (node.func, *node.args) if isinstance(each, ast.Name)}
            or called(node) == "Console"
        )
    }
    installing = "headwind/testbed/images.py"  # while the lab's packages are being installed
    assert users == {"headwind/cli/terminal.py", installing}


@pytest.mark.parametrize("program", ["docker", "docker-compose"])
def test_docker_is_run_by_one_file(program: str) -> None:
    users = [str(file.relative_to(ROOT)) for file in FILES if runs(file, program)]
    assert users == ["headwind/testbed/docker.py"], f"{program} may be run in headwind/testbed/docker.py only"


@pytest.mark.parametrize("module", sorted(inside(MODULES, "impair", "client", "browsers", "nginx", "servers")))
def test_code_in_containers_does_not_import_the_lab(module: str) -> None:
    assert not inside(imports(MODULES[module]), "headwind", "lab", "bench", "tests")


@pytest.mark.parametrize("module", sorted(NOUNS))
def test_the_nouns_and_the_wire_need_only_the_standard_library(module: str) -> None:
    outside = {name for name in imports(MODULES[module]) if name.partition(".")[0] not in sys.stdlib_module_names}
    assert outside <= NOUNS


def test_the_host_takes_from_impair_only_nouns_the_wire_and_what_only_looks() -> None:
    taken = {
        name for file in FILES if file.is_relative_to(ROOT / "headwind") for name in inside(imports(file), "impair")
    }
    looking = {"impair.fingerprint", "impair.baseline"}  # the containers' far ends are on this host
    computing = {"impair.endpoint", "impair.endpoint.dispersion"}  # pure: the rate that a train's arrivals show
    assert taken <= {"impair"} | NOUNS | looking | computing, "the host does nothing to a network itself"


@pytest.mark.parametrize("module", ["headwind.model", "headwind.plan.block_order", "headwind.verdicts.stats"])
def test_pure_modules_do_no_input_or_output(module: str) -> None:
    assert module in MODULES, f"{module} is gone: bring this list up to date"
    outside = {name for part in reach(module) for name in imports(MODULES[part])} - MODULES.keys()
    effects = {"io", "os", "pathlib", "shutil", "socket", "sqlite3", "subprocess", "sys", "tempfile", "time", "urllib"}
    assert not inside(outside, *effects)
    calls = {
        called(node) for part in reach(module) for node in ast.walk(tree(MODULES[part])) if isinstance(node, ast.Call)
    }
    assert not calls & {"open", "print", "input", "read_text", "write_text"}


# The packages and modules of headwind/: each may import those before it. Data classes come first; then an experiment is
# read, verified, started, run, judged and reported.
PACKAGE_ORDER = (
    "settings", "engines", "site", "servers", "browsers", "metric", "arm", "model", "errors", "site_folder", "observed",
    "format", "clock", "own_command", "stops", "matrix", "workloads", "proof", "testbed", "trial", "verdicts", "plan",
    "run", "cluster", "report", "cli",
)  # fmt: skip
# What a matrix may name is one list, and lies there; an arm may override the keys of each.
LISTS_OF_KINDS = {("headwind.matrix.document", "workloads"), ("headwind.matrix.arms", "workloads")}


def package_of(module: str) -> str:
    """`trial` for headwind.trial.probes; empty for the package itself and what is not of the host's side."""
    first, _, rest = module.partition(".")
    return rest.partition(".")[0] if first == "headwind" else ""


def test_every_package_is_in_the_order() -> None:
    assert {package_of(module) for module in inside(MODULES, "headwind")} - {""} == set(PACKAGE_ORDER)


@pytest.mark.parametrize("package", PACKAGE_ORDER)
def test_a_package_imports_only_packages_before_it(package: str) -> None:
    later = set(PACKAGE_ORDER[PACKAGE_ORDER.index(package) + 1 :])
    wrong = [
        f"{module} imports {name}"
        for module in MODULES
        if package_of(module) == package
        for name in imports(MODULES[module])
        if package_of(name) in later and (module, package_of(name)) not in LISTS_OF_KINDS
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("package", "never"),
    [
        ("run", {"headwind.testbed", "headwind.trial"}),  # a run folder is read where there is no container
        ("report", {"headwind.testbed", "headwind.trial"}),  # and a report is drawn from it alone
        ("testbed", {"headwind.matrix", "headwind.run"}),
        ("trial", {"headwind.matrix", "headwind.run"}),  # one trial knows nothing of the run that it is part of
        ("verdicts", {"headwind.matrix", "headwind.run", "headwind.testbed"}),
    ],
)
def test_a_package_never_reaches_these(package: str, never: set[str]) -> None:
    reached = {name for module in MODULES if package_of(module) == package for name in reach(module)}
    assert reached, f"headwind/{package} is gone: bring this list up to date"
    assert not inside(reached, *never)


def test_nothing_imports_the_command_line() -> None:
    assert not [name for name, file in MODULES.items() if "lab" in imports(file)]


def test_no_test_imports_another() -> None:
    """Code that several tests share is in plain modules next to them, or in a conftest."""
    for file in (ROOT / "tests").rglob("*.py"):
        parts = {part for name in imports(file) for part in name.split(".")}
        assert not {part for part in parts if part.startswith("test_")}, file


def test_no_module_imports_itself_in_a_circle() -> None:
    reached = {name: reach(name) for name in MODULES}
    circles = {frozenset(other for other in reached[name] if name in reached[other]) for name in MODULES}
    assert [sorted(circle) for circle in circles if len(circle) > 1] == []


def defined(module: str) -> set[str]:
    """Names at the top of a module, imported ones included, and the modules of a package."""
    found = {name.rpartition(".")[2] for name in MODULES if name.rpartition(".")[0] == module}
    for node in tree(MODULES[module]).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found |= {alias.asname or alias.name for alias in names}
            case ast.Assign(targets=targets):
                found |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return found


def test_programs_inside_strings_import_what_there_is() -> None:
    imported = r"^\s*from ((?:headwind|impair|client|browsers|nginx|servers)\b[\w.]*) import (\w+)"
    written = re.compile(rf"{imported}|-m ((?:impair|headwind)\.[\w.]+)", re.MULTILINE)
    found = [
        (file.name, hit)
        for file in [*FILES, *sorted((ROOT / "tests").rglob("*.py"))]
        for node in ast.walk(tree(file))
        for hit in written.findall(text_of(node))
    ]
    assert len(found) > 3, "there are such programs: this test has lost sight of them"
    assert not [
        (file, hit)
        for file, hit in found
        if (hit[0] or hit[2]) not in MODULES or (hit[0] and hit[1] not in defined(hit[0]))
    ]


def functions() -> Iterator[tuple[str, int]]:
    """Where each function begins, and how many lines it has without its docstring."""
    for file in FILES:
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[0]
                is_docstring = isinstance(first, ast.Expr) and bool(text_of(first.value))
                described = (first.end_lineno or 0) - first.lineno + 1 if is_docstring else 0
                lines = (node.end_lineno or 0) - node.lineno + 1 - described
                yield f"{file.relative_to(ROOT)}:{node.lineno} {node.name}", lines


def test_functions_are_short() -> None:
    long = [f"{place}: {lines} lines" for place, lines in functions() if lines > FUNCTION_LINES]
    assert not long, f"split what does two things (at most {FUNCTION_LINES} lines): {long}"


def test_names_say_what_a_thing_is() -> None:
    empty = re.compile(r"Manager|Helper|Utils?|Handler|Base$")
    names = {
        node.name for file in FILES for node in ast.walk(tree(file)) if isinstance(node, ast.ClassDef)
    } | MODULES.keys()
    assert not {name for name in names if empty.search(name.title() if name in MODULES else name)}


HEADLESS = re.compile(r"(What|Whose|Of|Those|There|One|Nothing)\b(?!-)")  # a docstring starts with a noun or a verb
QUAINT = re.compile(
    r"\b(told|mend|anew|whoever|(?<!user )nobody|somebody|beside|overtak(?:es?|ing)|under way|asked for|one of both"
    r"|of (?:its|their|your|the user's)\s+own(?! site))\b",
    re.IGNORECASE,
)
PLAIN = (
    "write reported, fix, again, anyone who, no host, next to, reordered, in flight, requested, either, a separate one"
)


@cache
def docstrings(file: Path) -> dict[ast.Constant, str]:
    """The docstrings of a file, each with its place."""
    found = {}
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            match node.body[0]:
                case ast.Expr(value=ast.Constant(value=str()) as text):
                    found[text] = f"{file.relative_to(ROOT)}:{text.lineno}"
    return found


def test_docstrings_can_be_read_alone() -> None:
    headless = [
        f"{place}: {text_of(node)[:60]}"
        for module in sorted(MODULES)
        for node, place in docstrings(MODULES[module]).items()
        if HEADLESS.match(text_of(node).lstrip())
    ]
    assert not headless, "start with a verb or a noun phrase"


def comments(file: Path) -> Iterator[tuple[int, str]]:
    with file.open("rb") as lines:
        for token in tokenize.tokenize(lines.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def test_strings_and_comments_have_no_quaint_words() -> None:
    quaint = [
        f"{file.relative_to(ROOT)}:{line}: {hit.group()}"
        for file in FILES
        for line, text in (
            *((node.lineno, text_of(node)) for node in ast.walk(tree(file)) if isinstance(node, ast.Constant)),
            *comments(file),
        )
        for hit in QUAINT.finditer(text)
    ]
    assert not quaint, PLAIN


PAGES = sorted((ROOT / "headwind/report/html/templates").glob("*.j2"))
DOCUMENTS = [ROOT / "Makefile", *(file for glob in ("*.md", "*.yaml", "docs/*.md", "experiments/*.yaml", "nginx/*.conf")
                                  for file in sorted(ROOT.glob(glob)))]  # fmt: skip
CODE_IN_DOCUMENTS = re.compile(r"^```.*?^```|`[^`]*`|^>.*?$", re.DOTALL | re.MULTILINE)  # and quotations
CODE_IN_PAGES = re.compile(r"{[{%#].*?[}%#]}|<!--.*?-->|<[^>]*>", re.DOTALL)


def test_pages_and_documents_have_no_quaint_words() -> None:
    quaint = [
        f"{file.relative_to(ROOT)}: {hit.group()}"
        for files, code in ((PAGES, CODE_IN_PAGES), (DOCUMENTS, CODE_IN_DOCUMENTS))
        for file in files
        for hit in QUAINT.finditer(code.sub("", file.read_text()))
    ]
    assert PAGES
    assert not quaint, PLAIN


def project_texts() -> Iterator[tuple[str, str]]:
    """Name and text of every file that git tracks or would track."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listing.stdout.split("\0")):
        file = ROOT / name
        if file.is_file():
            yield name, file.read_text(errors="replace")


def test_no_file_names_a_path_of_somebodys_machine() -> None:
    paths = re.compile(r"(?<![\w./-])/(home|Users|root|work|mnt)/[\w.]|/tm[p]/\w+/\w+|\.\./share[d]\b")
    found = [f"{name}: {hit.group()}" for name, text in project_texts() for hit in paths.finditer(text)]
    assert found == []


# Hosts that a file may name. A package index or a mirror is the user's own setting (pip, apt, Docker), never ours.
HOSTS = {
    "datatracker.ietf.org": "standards",
    "github.com": "sources of nghttp2 and issues that explain a decision",
    "json-schema.org": "the name of the schema language",
    "keepachangelog.com": "the changelog's form",
    "nginx.org": "nginx's documentation",
    "semver.org": "version numbers",
    "almanac.httparchive.org": "the medians of real pages",
    "www.rfc-editor.org": "standards",
    "www.w3.org": "XML name spaces",
}


def test_no_file_names_a_package_index_or_mirror() -> None:
    hosts = re.compile(r"\b(?:https?|ftp)://([a-z0-9-]+(?:\.[a-z0-9-]+)+)", re.IGNORECASE)
    bare = re.compile(
        r"(?<!pkg:)\b(?:pypi|pythonhosted|deb\.debian|security\.debian|registry-1)\b\.?[a-z]*|--(?:extra-)?index-ur[l]\b"
    )
    reserved = re.compile(r"(^|\.)(test|example|invalid|localhost)$|^example\.(com|org|net)$|^[0-9.]+$")
    found = [
        f"{name}: {host}"
        for name, text in project_texts()
        for host in hosts.findall(text)
        if host.lower() not in HOSTS and not reserved.search(host.lower())
    ]
    named = [
        f"{name}: {hit.group()}"
        for name, text in project_texts()
        if name != "tests/test_architecture.py"
        for hit in bare.finditer(text)
    ]
    assert found + named == []
