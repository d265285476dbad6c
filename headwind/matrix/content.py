"""The key `content` in matrix.yaml, a folder with the user's own site, and the paths of it that workloads fetch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from headwind.format import listed
from headwind.matrix.mistakes import Slip
from headwind.matrix.spelling import nearest
from headwind.matrix.units import Mistake, harmless, quoted, scalar
from headwind.matrix.values import url_path
from headwind.metric import Workload
from headwind.site import Site, name_of
from headwind.site_folder import SiteError, read_site
from servers.objects import size_of

if TYPE_CHECKING:
    from headwind.matrix.workload import WorkloadKeys

MOST_LOOKED_AT = 1000  # files of the folders of a folder
FOLDER = "folder"  # in pydantic's context: where the matrix is


@dataclass(frozen=True, slots=True)
class ContentFolder:
    """Annotates the type of `content`: the path of a folder, relative to the matrix file, is read as a Site."""

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(
            lambda value, info: _site(value, Path((info.context or {}).get(FOLDER, ".")))
        )

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "minLength": 1, "examples": ["site"]}


def _site(value: Any, home: Path) -> Site:
    text = scalar(value, "`site`")
    path = home / text.replace("\0", "")
    if not text or "\0" in text or not _is_folder(path):
        raise Mistake(f"{quoted(text)} is not a folder", where_looked(path, text, Path.is_dir))
    try:
        return read_site(path.resolve()).site
    except SiteError as error:
        raise Mistake(f"{quoted(text)} cannot be served: {error}", error.hint) from None


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # such as a name that is too long
        return False


def _one_below(folder: Path) -> list[Path]:
    """The content of a folder's folders; empty if it cannot be read."""
    try:
        return sorted(itertools.islice(folder.glob("*/*"), MOST_LOOKED_AT))
    except OSError:
        return []


def where_looked(path: Path, text: str, is_wanted: Callable[[Path], bool]) -> str:
    """The hint with the path that was looked for, written as `text`, and a wanted one of a similar name next to it."""
    try:
        names = [each.name for each in path.parent.iterdir() if is_wanted(each) and not each.name.startswith(".")]
    except OSError:
        names = []
    near = nearest(path.name, sorted(names)) if text else ""
    inner = [each for each in _one_below(path.parent) if each.name == path.name and is_wanted(each)] if text else []
    if not near and inner:
        near = str(inner[0].relative_to(path.parent))
    proposal = f"did you mean {quoted(Path(text).parent / near)}? " if near else ""
    return f"{proposal}the path is relative to this file: {harmless(path.resolve())}"


def with_files(keys: WorkloadKeys, workload: Workload, site: Site | None) -> Workload:
    """The workload with the files of the site that its paths name; unchanged if one of them is not a file of it.

    Those of a kind that may use the whole site are followed by all other files.
    """
    found = [site.file(path) for path in keys.paths_used().values()] if site else []
    files = tuple(file for file in found if file)
    if not files or len(files) < len(found):
        return workload
    others = [file for file in site.files if file not in files] if site and keys.has_whole_site else []
    return replace(workload, files=(*files, *others))


def content_slips(site: Site | None, workloads: Mapping[str, WorkloadKeys], *, has_own_servers: bool) -> Iterator[Slip]:
    """Mistakes of paths that are neither in the site nor, for a single `path`, among the lab's objects.

    Without a site, the user's own servers may have any path.
    """
    for name, keys in workloads.items():
        paths = keys.paths_used()
        if site is None and keys.needs_content:
            word = next(iter(paths))[0]
            hint = "`content: FOLDER` at the top of the file names the folder of your site"
            files = "`paths` are files" if word == "paths" else "the `path` of a page is a file"
            mistake = Mistake(f"{files} of the `content`, which this matrix does not have", hint)
            yield Slip(("workloads", name, word), mistake, at_key=True)
            continue
        for place, path in paths.items():
            found = _missing(site, path) if site else _without_content(path, has_own_servers=has_own_servers)
            if found and (keys.needs_content or not (site and size_of(path) is not None)):
                yield Slip(("workloads", name, *place), found)


def _without_content(path: str, *, has_own_servers: bool) -> Mistake | None:
    """The mistake of a path in a matrix without `content`; None if it can be requested."""
    try:
        url_path(path)
    except Mistake as mistake:
        return mistake
    if not has_own_servers and size_of(path.partition("?")[0]) is None:
        hint = "objects are `/`, `/1k`, `/10k`, `/100k`, `/1m`, `/10m`, `/100m` and `/bytes/15000`, of any size"
        return Mistake(f"the lab's servers have no object at {quoted(path)}", hint)
    return None


def _missing(site: Site, path: str) -> Mistake | None:
    """The mistake of a path that is no file of the site; None if it is one."""
    if site.file(path):
        return None
    name, names = name_of(path), [file.path for file in site.files]
    for above in (name, *map(str, Path(name).parents)):
        if reason := site.left_out.get(above):
            return Mistake(f"{quoted(path)} is not served: {quoted(above)} is {reason}", "use a copy of the file")
    if "?" in path and site.file(path.partition("?")[0]):
        hint = f"write {quoted(path.partition('?')[0])}; a ? that is part of a file's name is %3F"
    elif site.file(f"{path}/"):
        hint = f"did you mean {quoted(f'{path}/')}?"
    elif near := nearest(name, names) or next((each for each in names if each.rpartition("/")[2] == name), ""):
        hint = f"did you mean {quoted(f'/{near}')}?"
    else:
        hint = f"it has {listed([quoted(f'/{each}') for each in names], 5)}"
    return Mistake(f"the content has no file {quoted(path)}", hint)


def arm_content_slips(site: Site | None, own_paths: Mapping[str, bool]) -> Iterator[Slip]:
    """Mistakes of arms with their own `path`: by name, whether they have one."""
    for name in (name for name, has_path in own_paths.items() if has_path and site):
        hint = "make a workload for each path, so that each is compared with itself"
        yield Slip(("arms", name, "path"), Mistake("with `content`, an arm cannot have its own `path`", hint))
