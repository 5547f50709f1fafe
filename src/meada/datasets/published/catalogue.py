"""The published data sets: their files, sizes, checksums and addresses."""

from dataclasses import dataclass

from meada.errors import MeadaError, nearest


@dataclass(frozen=True)
class File:
    """One published file, or one folder of images; ``None`` stands for what is not published."""

    path: str  # below the data root
    size: int | None = None  # bytes
    md5: str | None = None
    url: str | None = None  # a public address that serves it to anybody
    folder: bool = False

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Domain:
    """One domain as it is published."""

    name: str
    about: str
    images: int
    files: tuple[File, ...]
    page: str  # where a person finds it, in words
    within: tuple[str, ...] = ("",)  # folders below the root that all of it may lie in


def domain(name: str) -> Domain:
    """The catalogue's entry, or an error with the nearest known name.

    >>> domain("svhn").images
    26032
    """
    if name not in CATALOGUE:
        raise MeadaError(f"unknown domain '{name}': {nearest(name, CATALOGUE)}")
    return CATALOGUE[name]


def fetchable(entry: Domain) -> bool:
    """Whether ``meada data get`` can download all of it."""
    return all(file.url is not None for file in entry.files)


def advice(entry: Domain, file: File) -> str:
    """The rest of a sentence about a missing or damaged file: what it should be, and from where.

    >>> advice(CATALOGUE["usps"], CATALOGUE["usps"].files[0])
    'published: usps.t.bz2, 1,831,726 bytes, md5 8ea070ee2aca1ac39742fdd1ef5ed118; get it with: meada data get usps'
    """
    kind = f"folder {file.name} of {entry.images:,} images" if file.folder else file.name
    size = f", {file.size:,} bytes" if file.size else ""
    md5 = f", md5 {file.md5}" if file.md5 else ""
    source = f"meada data get {entry.name}" if file.url else entry.page
    return f"published: {kind}{size}{md5}; get it {'with' if file.url else 'from'}: {source}"


_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"  # the mirror that stands in for LeCun's
_GANIN = "http://yaroslav.ganin.net, the page of the authors of"


def _mnist(name: str, size: int, md5: str) -> File:
    return File(f"mnist/{name}", size, md5, _MNIST + name)


PACS = Domain(
    name="pacs",
    about="seven classes as art painting, cartoon, photo and sketch, with lists",
    images=9_991,
    files=(File("pacs/images", folder=True), File("pacs/splits", folder=True)),
    page="https://domaingeneralization.github.io, the page of the authors of PACS",
)

_KRIZ = "https://www.cs.toronto.edu/~kriz/cifar.html"
_TEN_BINARY = [f"data_batch_{k}.bin" for k in range(1, 6)]


def _cifar(name: str, archive: str, folder: str, files: dict[str, int]) -> Domain:
    """The archive unpacks to a folder of its own; no checksums of its files are published."""
    return Domain(
        name=name,
        about=f"photographs of {name.removeprefix('cifar')} classes, train and test, binary version",
        images=60_000,
        files=tuple(File(f"{folder}/{file}", size) for file, size in files.items()),
        page=f"{_KRIZ} ({archive}, unpacked in the data folder)",
        within=("", name),
    )


CIFAR = (
    _cifar("cifar10", "cifar-10-binary.tar.gz", "cifar-10-batches-bin",
           dict.fromkeys([*_TEN_BINARY, "test_batch.bin"], 30_730_000)),
    _cifar("cifar100", "cifar-100-binary.tar.gz", "cifar-100-binary",
           {"train.bin": 153_700_000, "test.bin": 30_740_000}),
)  # fmt: skip

CATALOGUE: dict[str, Domain] = {
    entry.name: entry
    for entry in (
        Domain(
            name="mnist",
            about="handwritten digits, train and test",
            images=70_000,
            files=(
                _mnist("train-images-idx3-ubyte.gz", 9_912_422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
                _mnist("train-labels-idx1-ubyte.gz", 28_881, "d53e105ee54ea40749a09fcbcd1e9432"),
                _mnist("t10k-images-idx3-ubyte.gz", 1_648_877, "9fb629c4189551a2d022fa330f9573f3"),
                _mnist("t10k-labels-idx1-ubyte.gz", 4_542, "ec29112dd5afa0611ce80d1b7f02629c"),
            ),
            page="http://yann.lecun.com/exdb/mnist",
        ),
        Domain(
            name="svhn",
            about="house numbers in photographs, cropped, test",
            images=26_032,
            files=(
                File(
                    "svhn/test_32x32.mat",
                    64_275_384,
                    "eb5a983be6a315427106f1b164d9cef3",
                    "http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
                ),
            ),
            page="http://ufldl.stanford.edu/housenumbers",
        ),
        Domain(
            name="mnist_m",
            about="MNIST digits blended into photographs, test",
            images=9_001,
            files=(
                File("mnist_m/mnist_m_test_labels.txt"),
                File("mnist_m/mnist_m_test", folder=True),
            ),
            page=f"{_GANIN} MNIST-M (the unpacked version, mnist_m.tar.gz)",
        ),
        Domain(
            name="syn",
            about="digits rendered in computer fonts, test",
            images=9_553,
            files=(File("syn/synth_test_32x32.mat"),),
            page=f"{_GANIN} SYN (synthetic digits, SynthDigits.zip)",
        ),
        Domain(
            name="usps",
            about="handwritten digits from envelopes, test",
            images=2_007,
            files=(
                File(
                    "usps/usps.t.bz2",
                    1_831_726,
                    "8ea070ee2aca1ac39742fdd1ef5ed118",
                    "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/usps.t.bz2",
                ),
            ),
            page="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass.html",
        ),
        PACS,
        *CIFAR,
    )
}
