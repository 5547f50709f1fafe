"""Export a model to a single ONNX file and check that ONNX Runtime gives the same logits."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from meada.deploy.model import SEVERAL, Model, described
from meada.errors import MeadaError, one_line
from meada.evaluation import predict
from meada.files import write_bytes
from meada.machine.extras import need
from meada.pool import as_float
from meada.streams import stream

TOLERANCE = 1e-4  # relative to the largest logit; kernels sum in different orders
BATCHES = (1, 3)  # of random images: two sizes, since the batch is dynamic
REAL = 16  # real images, at most


class Checked(NamedTuple):
    """Largest difference between the logits of ONNX Runtime and of the network."""

    difference: float
    images: int
    real: int  # of them


def export_onnx(model: Model, path: Path) -> Checked:
    """Write the file if ONNX Runtime gives the same logits as the network."""
    content = converted(model)
    checked = check(content, model)
    write_bytes(path, content)
    return checked


def converted(model: Model) -> bytes:
    """Input ``images`` (batch, 3, side, side) in [0, 1], output ``logits``; metadata inside."""
    onnx = need("onnx", extra="export")
    need("onnxscript", extra="export")
    example = torch.rand(2, 3, model.side, model.side, generator=stream("export"), dtype=torch.float32)
    try:
        with _quiet():
            program = torch.onnx.export(
                model.float().eval(), (example,), dynamo=True, verbose=False, input_names=["images"],
                output_names=["logits"], dynamic_shapes={"images": {0: torch.export.Dim("batch")}},
            )  # fmt: skip
    except Exception as error:  # the exporter raises many kinds
        name = model.recipe.network["name"]
        raise MeadaError(f"network '{name}' cannot be expressed in ONNX: {one_line(error)}") from error
    assert program is not None
    made = program.model_proto
    for node in made.graph.node:  # remove stack traces, which contain paths of this machine
        del node.metadata_props[:]
    onnx.helper.set_model_props(made, metadata(model))
    return made.SerializeToString()


def metadata(model: Model) -> dict[str, str]:
    """Metadata of the ONNX file: class names, input size and, if the model has them, label kind and threshold."""
    held = {key: model.about[key] for key in (SEVERAL, "abstain_entropy") if key in model.about}
    about = described(model.recipe, model.classes, model.side)
    return {**about, "made_by": f"meada {model.about.get('meada', '')}", **held}


def samples(model: Model) -> tuple[list[Tensor], list[Tensor]]:
    """Batches of random images, and of real ones if the run has saved some."""
    generator, shape = stream("export check"), (3, model.side, model.side)
    made = [torch.rand(n, *shape, generator=generator, dtype=torch.float32) for n in BATCHES]
    kept = model.run.load_gallery() if model.run else {}
    real = [images[:REAL] for name, images in kept.items() if name.endswith(".source")]
    return made, [as_float(images).float() for images in real[:1]]


def check(content: bytes, model: Model) -> Checked:
    runtime = need("onnxruntime", extra="export")
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    made, real = samples(model)
    worst = 0.0
    for x in (*made, *real):
        expected = predict(model.net, x).float()
        (got,) = (torch.from_numpy(y) for y in session.run(["logits"], {"images": x.numpy()}))
        difference = float((got - expected).abs().max())
        limit = TOLERANCE * max(1.0, float(expected.abs().max()))
        if got.shape != expected.shape or not difference <= limit:
            raise MeadaError(
                f"ONNX Runtime's logits must agree with the network's to {limit:.2g}, got a difference of "
                f"{difference:.2g}: no file was written"
            )
        worst = max(worst, difference)
    return Checked(worst, sum(len(x) for x in (*made, *real)), sum(len(x) for x in real))


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the exporter's messages about its internals."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(logging.NOTSET)
