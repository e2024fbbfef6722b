"""The manifest: what ships is complete and right, and every fault is named with its entry and field."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from gpen_zoo import hints, manifest
from gpen_zoo.errors import ManifestInvalid

MINIMAL = """
version: 1
licences:
  mine: {spdx: CC0-1.0, zh: 公有领域, en: public domain}
weights:
  - name: Mine-64
    role: restorer
    branch: 64
    file: mine.safetensors
    architecture: {family: GPEN, size: 64, style_dim: 32, n_mlp: 2, channel_multiplier: 1, narrow: 0.25}
    bytes: 10
    sha256: "%s"
    licence: mine
""" % ("a" * 64)


def load(tmp_path: Path, text: str) -> tuple[manifest.Entry, ...]:
    path = tmp_path / "manifest.yaml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return manifest.load(path)


def test_ours_names_every_weight() -> None:
    entries = {entry.name: entry for entry in manifest.load()}
    assert [e.branch for e in entries.values() if e.role == "restorer" and not e.bundled] == [256, 512, 1024, 2048]
    assert {e.role for e in entries.values()} == {
        *("restorer", "colorizer", "inpainter", "seg2face", "discriminator", "detector", "parser", "upscaler")
    }
    assert entries["GPEN-BFR-512"].bytes == 284085738
    assert entries["GPEN-BFR-512"].sha256 == "f1002c41add95b0decad69604d80455576f7187dd99ca16bd611bcfd44c10b51"
    assert [s.kind for s in entries["GPEN-BFR-512"].sources] == ["huggingface", "huggingface", "https", "https"]
    assert not entries["GPEN-BFR-1024"].pinned and entries["GPEN-BFR-1024"].expected_bytes == 284_910_000
    assert entries["GPEN-BFR-256"].architecture.params["narrow"] == 0.5
    assert entries["RetinaFace-R50"].answers_to("detection_Resnet50_Final.pth")
    assert entries["RetinaFace-R50"].answers_to("retinaface-r50")
    for entry in entries.values():
        assert entry.licence.zh and entry.licence.en
        assert entry.bundled or entry.sources, entry.name
        if entry.name.startswith(("GPEN", "gpen")):
            assert entry.alignment is not None and entry.alignment[0] == (0.39461071, 0.47438274)


def test_ours_repeats_the_facts(shared: Path) -> None:
    """Every digest of the fact sheet's tables stands in the manifest and the other way round."""
    facts = (shared / "facts" / "weights.md").read_text(encoding="utf-8")
    for entry in manifest.load():
        if not entry.bundled and entry.sha256:
            assert f"| {entry.bytes} | {entry.sha256}" in facts, entry.name
        for source in entry.sources:
            assert len(source.revision) != 40 or source.revision in facts, source


def test_licence_of_gpen_is_shown_as_known_and_claims_nothing() -> None:
    licence = next(e.licence for e in manifest.load() if e.name == "GPEN-BFR-512")
    assert licence.spdx == "NOASSERTION"
    for part in ("for academic and non-commercial use only", "2026-03-10", "Non-Commercial"):
        assert part in licence.en


def test_minimal_manifest(tmp_path: Path) -> None:
    (entry,) = load(tmp_path, MINIMAL)
    assert entry.stored_as == "Mine-64.safetensors" and entry.sources == () and entry.pinned


@pytest.mark.parametrize(
    ("old", "new", "code", "entry", "field"),
    [
        ("    file: mine.safetensors\n", "", "W21", "Mine-64", "file"),
        ("    licence: mine\n", "", "W21", "Mine-64", "licence"),
        ("name: Mine-64", "title: Mine-64", "W21", "#1", "name"),
        ("    role: restorer", "    role: restorer\n    colour: red", "W22", "Mine-64", "colour"),
        ("role: restorer", "role: restaurer", "W23", "Mine-64", "role"),
        ("branch: 64", "branch: 128", "W23", "Mine-64", "branch"),
        ("branch: 64", "branch: -64", "W23", "Mine-64", "branch"),
        ("bytes: 10", "bytes: ten", "W23", "Mine-64", "bytes"),
        ("bytes: 10", "bytes: true", "W23", "Mine-64", "bytes"),
        ("bytes: 10", "bytes: null", "W23", "Mine-64", "bytes"),
        ('sha256: "aa', 'sha256: "AA', "W23", "Mine-64", "sha256"),
        ("licence: mine", "licence: yours", "W23", "Mine-64", "licence"),
        ("licence: mine", "licence: mine\n    alignment: ffhq", "W23", "Mine-64", "alignment"),
        ("n_mlp: 2, ", "", "W21", "Mine-64", "architecture.n_mlp"),
        ("n_mlp: 2", "n_mlp: [2]", "W23", "Mine-64", "architecture.n_mlp"),
        ("zh: 公有领域, ", "", "W21", "licences", "mine.zh"),
        ("name: Mine-64", "name: ../../etc/passwd", "W23", "#1", "name"),
        ("name: Mine-64", "name: con.x", "W23", "con.x", "name"),
        ("file: mine.safetensors", "file: /etc/passwd", "W23", "Mine-64", "file"),
        ("file: mine.safetensors", "file: ..\\mine.pth", "W23", "Mine-64", "file"),
        ("licence: mine", "licence: mine\n    aliases: [../up.pth]", "W23", "Mine-64", "aliases"),
        ("licence: mine", "licence: mine\n    sources: {}", "W23", "Mine-64", "sources"),
        ("licence: mine", "licence: mine\n    sources: [{kind: ftp}]", "W23", "Mine-64", "sources[1].kind"),
        (
            "licence: mine",
            "licence: mine\n    sources: [{kind: https, url: 'http://example.org/a'}]",
            *("W23", "Mine-64", "sources[1].url"),
        ),
        (
            "licence: mine",
            "licence: mine\n    sources: [{kind: https, url: 'https://me:secret@example.org/a'}]",
            *("W23", "Mine-64", "sources[1].url"),
        ),
        (
            "licence: mine",
            "licence: mine\n    sources: [{kind: huggingface, repo: a/b, file: ../c.pth, revision: main}]",
            *("W23", "Mine-64", "sources[1].file"),
        ),
        (
            "licence: mine",
            "licence: mine\n    sources: [{kind: huggingface, repo: a/b, file: c.pth}]",
            *("W21", "Mine-64", "sources[1].revision"),
        ),
        ("licence: mine", "licence: mine\n    safetensors: {bytes: 5}", "W21", "Mine-64", "safetensors.sha256"),
        ("version: 1", "version: 2", "W23", "-", "version"),
    ],
)
def test_faults_name_entry_and_field(tmp_path: Path, old: str, new: str, code: str, entry: str, field: str) -> None:
    assert MINIMAL.count(old) == 1
    with pytest.raises(ManifestInvalid) as caught:
        load(tmp_path, MINIMAL.replace(old, new))
    assert caught.value.code == code
    assert (caught.value.note.params["entry"], caught.value.note.params["field"]) == (entry, field)
    for lang in ("zh", "en"):
        assert entry in hints.say(caught.value.note, lang) and field in hints.say(caught.value.note, lang)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "version: [",
        "version: 1\nversion: 1",
        "\x00",
        "version: 1\nweights: &a [*a]",
        "version: !!python/object:os.system {}",
    ],
)
def test_not_a_manifest(tmp_path: Path, text: str) -> None:
    with pytest.raises(ManifestInvalid):
        load(tmp_path, text)


def test_absent_and_oversized_file(tmp_path: Path) -> None:
    with pytest.raises(ManifestInvalid, match="absent.yaml"):
        manifest.load(tmp_path / "absent.yaml")
    with pytest.raises(ManifestInvalid, match="1048576"):
        load(tmp_path, "#" * (manifest.LIMIT + 1))


def test_two_entries_with_one_name_or_alias(tmp_path: Path) -> None:
    one = MINIMAL[MINIMAL.index("  - name") :]
    with pytest.raises(ManifestInvalid) as caught:
        load(tmp_path, MINIMAL + one)
    assert caught.value.code == "W24" and caught.value.note.params["field"] == "name"
    with pytest.raises(ManifestInvalid) as caught:
        load(tmp_path, MINIMAL + one.replace("Mine-64", "Other-64").replace("mine.safetensors", "MINE.pth"))
    assert (caught.value.code, caught.value.note.params["entry"]) == ("W24", "Other-64")


def test_own_manifest_over_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The own file may refer to our licences, replaces entries of the same name and adds others."""
    own = tmp_path / "own.yaml"
    body = MINIMAL[MINIMAL.index("weights:") :].replace("licence: mine", "licence: gpen\n    alignment: gpen")
    own.write_text("version: 1\n" + body + body[9:].replace("Mine-64", "YuNet").replace("mine.", "yunet."), "utf-8")
    monkeypatch.setenv("GPEN_ZOO_MANIFEST", str(own))
    before, after = manifest.load(manifest.default_path()), manifest.load()
    assert len(after) == len(before) + 1
    names = [entry.name for entry in after]
    assert names.index("YuNet") == [e.name for e in before].index("YuNet") and names[-1] == "Mine-64"
    assert after[names.index("YuNet")].file == "yunet.safetensors"
    assert after[-1].alignment == before[0].alignment
