"""Renders a kustomization without kubectl, as far as the files in `k8s/` need it, so that tests need no kubectl.

If kubectl is installed, a test compares the two results. Here ConfigMaps keep their names; kustomize appends a hash of
their content.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]

KNOWN = {"apiVersion", "kind", "resources", "configMapGenerator", "labels", "nameSuffix", "patches"}


def render(folder: Path) -> list[Manifest]:
    """Returns all resources of a kustomization, including those of its bases.

    Raises:
        ValueError: the kustomization has a key that this module cannot render.
    """
    asked: Manifest = yaml.safe_load((folder / "kustomization.yaml").read_text("utf-8"))
    if unknown := asked.keys() - KNOWN:
        raise ValueError(f"{folder}: {', '.join(sorted(unknown))} is not rendered here")
    found: list[Manifest] = []
    for name in asked.get("resources", []):
        path = folder / name
        found += render(path) if path.is_dir() else list(yaml.safe_load_all(path.read_text("utf-8")))
    for generator in asked.get("configMapGenerator", []):
        _generate(folder, generator, found)
    for patch in asked.get("patches", []):
        (change,) = yaml.safe_load_all((folder / patch["path"]).read_text("utf-8"))
        (target,) = [each for each in found if _name(each) == _name(change)]
        found[found.index(target)] = _merged(target, change)
    _rename(found, asked.get("nameSuffix", ""))
    for labels in asked.get("labels", []):
        for each in found:
            _label(each, labels["pairs"], selectors=labels.get("includeSelectors", False))
    return found


def _generate(folder: Path, generator: Manifest, found: list[Manifest]) -> None:
    data = {name: (folder / name).read_text("utf-8") for name in generator.get("files", [])}
    for name in generator.get("envs", []):
        lines = (line.strip() for line in (folder / name).read_text("utf-8").splitlines())
        data |= dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": generator["name"]}, "data": data}
    if generator.get("behavior") == "merge":
        (former,) = [each for each in found if _name(each) == _name(made)]
        former["data"] |= data
    else:
        found.append(made)


def _merged(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        merged = {**old, **{key: _merged(old[key], value) if key in old else value for key, value in new.items()}}
        return {key: value for key, value in merged.items() if value is not None}  # a patch with null removes
    if isinstance(old, list) and isinstance(new, list) and all(_is_named(each) for each in [*old, *new]):
        changes = {each["name"]: each for each in new}
        kept = [_merged(each, changes.pop(each["name"], {})) for each in old]
        return kept + list(changes.values())
    return new


def _is_named(item: Any) -> bool:
    return isinstance(item, dict) and "name" in item  # lists of other items, such as `envFrom`, are replaced


def _rename(found: list[Manifest], suffix: str) -> None:
    services = {each["metadata"]["name"] for each in found if each["kind"] == "Service"}
    for each in found:
        each["metadata"]["name"] += suffix
        if each.get("spec", {}).get("serviceName") in services:
            each["spec"]["serviceName"] += suffix


def _label(manifest: Manifest, pairs: dict[str, str], *, selectors: bool) -> None:
    places = [manifest["metadata"].setdefault("labels", {})]
    spec = manifest.get("spec", {})
    if selectors:
        if "template" in spec:
            places.append(spec["template"]["metadata"].setdefault("labels", {}))
        places += [each["metadata"].setdefault("labels", {}) for each in spec.get("volumeClaimTemplates", [])]
        places += [spec["selector"]] if manifest["kind"] == "Service" else _match_labels(spec)
    for place in places:
        place.update(copy.copy(pairs))


def _match_labels(part: Any) -> list[dict[str, str]]:
    if isinstance(part, list):
        return [found for each in part for found in _match_labels(each)]
    if not isinstance(part, dict):
        return []
    found = [part["matchLabels"]] if "matchLabels" in part else []
    return found + [place for each in part.values() for place in _match_labels(each)]


def _name(manifest: Manifest) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]
