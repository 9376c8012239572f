"""The files of deploy/ fit this version, checked by systemd's and Prometheus's own programs where installed."""

import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import load_command_class
from django.urls import get_resolver

from memoryhub.http import health
from memoryhub.http.middleware import ProbesMiddleware
from tests.api import openapi_schema
from tests.routes import known_routes, route_patterns

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed here")


def run(*command: str, folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr, done.stderr


@pytest.mark.django_db
def test_metrics_that_are_asked_for_are_there() -> None:
    for file in ("rules.yml", "rules.test.yml", "grafana.json"):
        told = set(re.findall(r"^# TYPE (\w+)", health.exposition().decode(), re.MULTILINE))
        asked = set(re.findall(r"memoryhub_\w+", (DEPLOY / "prometheus" / file).read_text()))
        assert asked, file
        assert {re.sub(r"_(bucket|count|sum)$", "", name) for name in asked} <= told, file


def test_the_dashboard_draws_each_panel_in_a_place_of_its_own() -> None:
    panels = json.loads((DEPLOY / "prometheus/grafana.json").read_text())["panels"]
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels) == len({panel["id"] for panel in panels}) >= 8


@needs("promtool")
def test_the_alerts_sound_on_a_bad_day_and_are_silent_on_a_good_one() -> None:
    run("promtool", "check", "rules", "rules.yml", folder=DEPLOY / "prometheus")
    run("promtool", "test", "rules", "rules.test.yml", folder=DEPLOY / "prometheus")


@needs("haproxy")
def test_haproxy_understands_what_stands_before_the_web_hosts(tmp_path: Path) -> None:
    text = (DEPLOY / "haproxy/haproxy.cfg").read_text()
    hosts = ["web1.internal", "web2.internal"]
    assert re.findall(r"^ +server \w+ (\S+):8000", text, re.MULTILINE) == hosts * 2, "in both backends"
    (tmp_path / "haproxy.cfg").write_text(
        re.sub(r"web\d\.internal", "127.0.0.1", text)
    )  # names are not resolved here
    run("haproxy", "-c", "-q", "-f", "haproxy.cfg", folder=tmp_path)


def test_the_proxy_repeats_under_a_key_what_looks_at_it_and_nothing_else() -> None:
    text = (DEPLOY / "haproxy/haproxy.cfg").read_text()
    once = re.compile("|".join(re.findall(r"^ +acl once path_reg (\S+)$", text, re.MULTILINE)))
    paths = openapi_schema()["paths"]
    looks = {
        f"{method.upper()} {path}"
        for path, methods in paths.items()
        for method, said in methods.items()
        if "Idempotency-Key" in {each["name"] for each in said.get("parameters", [])}
    }
    assert len(looks) > 20
    for method, route in known_routes():
        named = f"{method} /" + re.sub(r"<\w+:(\w+)>", r"{\1}", route)
        path = re.sub(r"<(?:\w+_id:)?(\w+?)(?:_id)?>", r"\1_x", route)
        if method in {"POST", "PATCH", "*"}:
            assert bool(once.search(f"/{path}".replace("memory_x", "mem_x"))) == (named in looks), named
            looks.discard(named)
    assert looks == set()


def test_what_streams_takes_nobodys_room_at_the_proxy() -> None:
    """A stream occupies its connection, and the number of others for each host is limited."""
    text = (DEPLOY / "haproxy/haproxy.cfg").read_text()
    patterns = re.findall(r"^ +acl lasts path_reg (\S+)$", text, re.MULTILINE)
    ends = re.findall(r"^ +acl lasts path_end (.+)$", text, re.MULTILINE)[0].split()
    lasts = re.compile("|".join([*patterns, *(f"{re.escape(end)}$" for end in ends)]))
    streams = set()
    for route, pattern in route_patterns(get_resolver().url_patterns, ""):
        view = getattr(pattern.callback, "cls", None)
        acts = [getattr(view, name) for name in ("get", "post") if hasattr(view, name)]
        acts = acts or [inspect.unwrap(pattern.callback)]
        says = any("Stream" in str(act.__annotations__.get("return")) for act in acts)
        if says or route.endswith("stream/"):
            streams.add(route)
            path = "/" + re.sub(r"<(?:\w+:)?(\w+?)(?:_id)?>", r"\1_x", route)
            assert lasts.search(path), path
    assert len(streams) > 15
    quick = ("/", "/workspaces/ws_x/", "/workspaces/ws_x/memories/", "/chat/api/chats", "/accounts/login/")
    assert not any(lasts.search(path) for path in quick)


@needs("systemd-analyze")
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    units = sorted((DEPLOY / "systemd").iterdir())
    assert len(units) == 3
    for unit in units:
        text = unit.read_text().replace("/opt/memoryhub/.venv/bin/python", sys.executable)
        (tmp_path / unit.name).write_text(text)
    run("systemd-analyze", "verify", *(str(tmp_path / unit.name) for unit in units), folder=tmp_path)


def test_the_units_call_commands_that_there_are() -> None:
    text = "\n".join(unit.read_text() for unit in (DEPLOY / "systemd").glob("*.service"))
    commands = set(re.findall(r"manage\.py (\w+)", text))
    assert commands == {"up", "backup"}
    assert all((ROOT / f"memoryhub/management/commands/{name}.py").exists() for name in commands)


def test_an_image_brings_what_is_run_and_no_more() -> None:
    ignored = (DEPLOY / "container/Dockerfile.dockerignore").read_text().split()
    needed = {
        "Makefile",
        "manage.py",
        "requirements",
        "static",
        "templates",
        "chat",
        "memories",
        "memoryhub",
        "workspaces",
    }
    assert not needed & set(ignored)
    assert {".*", "var", "tests"} <= set(ignored), "no data, no keys, no history"
    assert all((ROOT / name).exists() for name in needed)


KUBERNETES = [path for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")) if path.stem != "kustomization"]
COMPOSE = sorted((DEPLOY / "container").glob("compose*.yaml"))


def of_kubernetes() -> list[dict[str, Any]]:
    return [each for path in KUBERNETES for each in yaml.safe_load_all(path.read_text())]


def pods() -> dict[str, dict[str, Any]]:
    found = {}
    for each in of_kubernetes():
        spec = each.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            found[each["metadata"]["name"]] = spec["template"]["spec"]
    return found


def settings_known() -> set[str]:
    return set(
        re.findall(r"`((?:MEMORYHUB_|DATABASE_URL)[A-Z0-9_]*)`", (ROOT / "docs/options.md").read_text())
    )


def test_kubernetes_takes_every_manifest() -> None:
    """The manifests match Kubernetes' own schemas, of the newest and of an old version, without unknown fields."""
    validate = pytest.importorskip("kubernetes_validate").validate
    objects = of_kubernetes()
    assert {each["kind"] for each in objects} >= {
        "Deployment",
        "Job",
        "Service",
        "Secret",
        "ConfigMap",
        "Ingress",
    }
    for each in objects:
        for version in ("1.28", kubernetes_latest()):
            validate(each, version, strict=True)
    listed = yaml.safe_load((DEPLOY / "kubernetes/kustomization.yaml").read_text())["resources"]
    assert {*listed, "secrets.example.yaml"} == {path.name for path in KUBERNETES}


@needs("kubectl")
def test_kustomize_makes_of_them_what_is_applied() -> None:
    folder = DEPLOY / "kubernetes"
    made = subprocess.check_output(["kubectl", "kustomize", str(folder)], text=True, timeout=60)
    objects = list(yaml.safe_load_all(made))
    by_hand = [each for each in of_kubernetes() if each["kind"] != "Secret"]
    named = sorted((each["kind"], each["metadata"]["name"]) for each in objects)
    assert named == sorted((each["kind"], each["metadata"]["name"]) for each in by_hand)
    assert {each["metadata"]["namespace"] for each in objects} == {"memoryhub"}
    image = yaml.safe_load((folder / "kustomization.yaml").read_text())["images"][0]
    assert set(re.findall(r"image: (\S+)", made)) == {f"{image['newName']}:{image['newTag']}"}


def kubernetes_latest() -> str:
    import kubernetes_validate

    return ".".join(str(kubernetes_validate.latest_version()).split(".")[:2])


def test_pods_are_nobody_of_note_and_write_where_they_may() -> None:
    parts = {"web", "worker", "model", "prepare", "backup"}
    assert set(pods()) == {f"memoryhub-{part}" for part in parts}
    dockerfile = (DEPLOY / "container/Dockerfile").read_text()
    for pod in pods().values():
        (container,) = pod["containers"]
        assert (pod["securityContext"]["runAsNonRoot"], pod["automountServiceAccountToken"]) == (True, False)
        assert f"USER {pod['securityContext']['runAsUser']}" in dockerfile
        secured = container["securityContext"]
        assert secured["readOnlyRootFilesystem"] and not secured["allowPrivilegeEscalation"]
        assert secured["capabilities"] == {"drop": ["ALL"]}
        assert (
            container["resources"]["requests"].keys() == {"cpu", "memory"}
            and container["resources"]["limits"]
        )
        mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert set(mounted) == {volume["name"] for volume in pod["volumes"]}
        assert {"/data", "/tmp", "/run/secrets/memoryhub"} <= set(mounted.values())


def test_parts_are_started_as_up_takes_them_and_probed_where_they_answer() -> None:
    for name, pod in pods().items():
        (container,) = pod["containers"]
        command, *arguments = container["args"]
        load_command_class("memoryhub", command).create_parser("manage.py", command).parse_args(arguments)
        assert name == f"memoryhub-{arguments[1] if command == 'up' else command}"
        probed = {container[probe]["httpGet"]["path"] for probe in container if probe.endswith("Probe")}
        known = {"/health"} if name == "memoryhub-model" else set(ProbesMiddleware.VIEWS)
        assert probed <= known and bool(probed) == ("ports" in container)
    services = {
        each["metadata"]["name"]: each["spec"] for each in of_kubernetes() if each["kind"] == "Service"
    }
    assert {spec["selector"]["app"] for spec in services.values()} <= set(pods())


def test_what_is_set_for_containers_is_a_setting_and_secrets_are_there() -> None:
    by_kind = {each["kind"]: each for each in of_kubernetes() if each["kind"] in {"ConfigMap", "Secret"}}
    said = dict(by_kind["ConfigMap"]["data"])
    model = {each["name"]: each["value"] for each in pods()["memoryhub-model"]["containers"][0]["env"]}
    assert {name: value for name, value in model.items() if said[name] != value} == {}, (
        "it is found where it is"
    )
    backup = pods()["memoryhub-backup"]["containers"][0]
    said |= {each["name"]: each["value"] for each in backup["env"]}
    files = {value.rsplit("/", 1)[1] for name, value in said.items() if name.endswith("_FILE")}
    assert files == set(by_kind["Secret"]["stringData"])
    assert backup["args"][1] in {mount["mountPath"] for mount in backup["volumeMounts"]}
    for compose in COMPOSE:
        for service in yaml.safe_load(compose.read_text())["services"].values():
            ours = service.get("environment", {}) if "build" in service else {}
            said |= ours
            files_of = {value.rsplit("/", 1)[1] for name, value in ours.items() if name.endswith("_FILE")}
            assert files_of <= set(service.get("secrets", []))
    of_others = {"ORT_DISABLE_TELEMETRY"}  # onnxruntime's own
    assert {name.removesuffix("_FILE") for name in said} <= settings_known() | of_others


def test_backups_of_containers_are_made_where_docs_say_and_kept() -> None:
    for compose in COMPOSE:
        lines = re.findall(
            r"^ {4}docker compose -f (\S+) exec -T (\w+) \.venv/bin/python manage\.py (\w+) (.+)$",
            (ROOT / "docs/operations.md").read_text(),
            re.MULTILINE,
        )
        ((service, command, rest),) = [rest for place, *rest in lines if ROOT / place == compose]
        told = yaml.safe_load(compose.read_text())["services"][service]
        options = (
            load_command_class("memoryhub", command)
            .create_parser("manage.py", command)
            .parse_args(rest.split())
        )
        assert (command, options.keep) == ("backup", 14), compose
        assert f"backups:{options.file}" in told["volumes"], compose
        assert f" {options.file}\n" in (DEPLOY / "container/Dockerfile").read_text(), (
            "its owner's, and so the volume's"
        )
        assert told["environment"].keys() >= {"MEMORYHUB_BACKUP_PASSPHRASE"}, compose


def test_compose_starts_ours_hardened_and_keeps_what_it_names() -> None:
    for compose in COMPOSE:
        told = yaml.safe_load(compose.read_text())
        ours = [service for service in told["services"].values() if "build" in service]
        assert ours, compose
        for service in ours:
            assert service["read_only"] and service["cap_drop"] == ["ALL"], compose
            assert (compose.parent / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
            command, *arguments = service.get("command", ["up"])
            load_command_class("memoryhub", command).create_parser("manage.py", command).parse_args(arguments)
            assert set(service.get("depends_on", {})) <= set(told["services"]), compose
        for service in told["services"].values():
            named = {volume.split(":")[0] for volume in service.get("volumes", [])}
            beside = {name for name in named if name.startswith("./")}
            assert named - beside <= set(told["volumes"]), compose
            assert all((compose.parent / name).is_file() for name in beside)
            assert set(service.get("secrets", [])) <= set(told.get("secrets", {})), compose
