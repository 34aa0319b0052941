# SPDX-License-Identifier: Apache-2.0
"""Renders a kustomization, with the part of kustomize that deploy/kubernetes uses.

As a program, prints it: /usr/bin/python3 -m tests.deploy.kustomization FOLDER. manifests_test
compares it with kubectl's own rendering where there is a kubectl.
"""

import pathlib
import sys

import yaml

_KNOWN = {"apiVersion", "kind", "namespace", "resources", "components", "patches", "images"}
# Elements of these lists are merged by this key; a patch replaces all other lists.
_MERGED_BY = {"containers": "name", "initContainers": "name", "env": "name", "volumes": "name",
              "volumeMounts": "mountPath"}
_WITHOUT_NAMESPACE = {"ClusterRole", "ClusterRoleBinding"}


def render(folder):
    """The objects of the kustomization in `folder`, in the order of its files."""
    objects = []
    _apply(pathlib.Path(folder), objects)
    return objects


def text_of(objects):
    """YAML, ordered by kind and name."""
    ordered = sorted(objects, key=lambda found: (found["kind"], found["metadata"]["name"]))
    return yaml.safe_dump_all(ordered, sort_keys=True, width=100)


def name_of(found):
    return f"{found['kind']} {found['metadata']['name']}"


def _load(path):
    return [found for found in yaml.safe_load_all(path.read_text()) if found]


def _apply(folder, objects):
    [settings] = _load(folder / "kustomization.yaml")
    if unknown := set(settings) - _KNOWN:
        raise ValueError(f"{folder}: this renderer does not know {sorted(unknown)}")
    for path in settings.get("resources", []):
        if (folder / path).is_dir():
            objects += render(folder / path)
        else:
            objects += _load(folder / path)
    for path in settings.get("components", []):
        _apply(folder / path, objects)
    for patch in settings.get("patches", []):
        for change in _load(folder / patch["path"]):
            [target] = [found for found in objects if name_of(found) == name_of(change)]
            _merge(target, change)
    for found in objects:
        if "namespace" in settings and found["kind"] not in _WITHOUT_NAMESPACE:
            found["metadata"]["namespace"] = settings["namespace"]
        for container in containers(found):
            _rename(container, settings.get("images", []))


def pod_of(found):
    """The specification of the pods that an object makes; None = it makes none."""
    return found.get("spec", {}).get("template", {}).get("spec")


def containers(found):
    pod = pod_of(found) or {}
    return pod.get("initContainers", []) + pod.get("containers", [])


def _rename(container, images):
    for image in images:
        if container["image"].split(":")[0] == image["name"]:
            container["image"] = f"{image.get('newName', image['name'])}:{image['newTag']}"
            return


def _merge(target, change):
    """A strategic merge, of dictionaries."""
    for key, value in change.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        elif key in _MERGED_BY and key in target:
            _merge_lists(target[key], value, _MERGED_BY[key])
        else:
            target[key] = value


def _merge_lists(target, change, key):
    there = {element[key]: element for element in target}
    new = []
    for element in change:
        if element[key] in there:
            _merge(there[element[key]], element)
        else:
            new.append(element)
    target[:0] = new  # as kustomize has it


if __name__ == "__main__":
    print(text_of(render(sys.argv[1])), end="")
