"""What the catalogue says of published files, and what is still to be fetched."""

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pytest

from meada.datasets.digits import READERS
from meada.datasets.published.catalogue import CATALOGUE, Domain, File, domain, fetchable
from meada.datasets.published.download import outstanding
from meada.errors import MeadaError

FILE = File("set/set.bin", 3, hashlib.md5(b"abc").hexdigest(), "http://127.0.0.1/set.bin")


@pytest.mark.parametrize("name", CATALOGUE)
def test_an_entry_goes_by_its_own_name_and_keeps_its_files_in_its_own_folder(name: str):
    entry = CATALOGUE[name]
    assert entry.name == name
    for file in entry.files:
        assert file.path.split("/")[0] == entry.files[0].path.split("/")[0]
        assert file.md5 is None or re.fullmatch("[0-9a-f]{32}", file.md5)
        # without a checksum nobody could tell whether a download is right
        assert file.url is None or (file.md5 and file.size and file.url.endswith(file.name))


def test_every_digits_domain_is_in_the_catalogue():
    assert READERS.keys() <= CATALOGUE.keys()
    assert [name for name in READERS if fetchable(domain(name))] == ["mnist", "svhn", "usps"]


def test_what_is_there_as_published_is_not_fetched_again(tmp_path: Path):
    other = replace(FILE, path="set/other.bin")
    entry = Domain("set", "a set", 1, (FILE, other), "its page")
    (tmp_path / "set").mkdir()
    assert outstanding(entry, tmp_path) == [FILE, other]
    (tmp_path / other.path).write_bytes(b"abc")
    assert outstanding(entry, tmp_path) == [FILE]
    (tmp_path / FILE.path).write_bytes(b"rebuilt")
    with pytest.raises(MeadaError, match="not the published .* --force"):
        outstanding(entry, tmp_path)
    assert outstanding(entry, tmp_path, force=True) == [FILE, other]


def test_a_domain_without_address_says_where_to_look_and_where_to_put_it(tmp_path: Path):
    with pytest.raises(MeadaError, match=r"yaroslav\.ganin.*synth_test_32x32\.mat"):
        outstanding(CATALOGUE["syn"], tmp_path)
