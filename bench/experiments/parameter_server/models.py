"""Builds the networks of the study as torch modules of our own, for images of 3 x 32 x 32 in ten classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from bench.data.images import CLASSES

if TYPE_CHECKING:
    from torch import Tensor, nn

Name = Literal["convolution", "lenet", "resnet18", "vgg16"]
NAMES: tuple[Name, ...] = get_args(Name)

PARAMETERS = {"convolution": 6_844, "lenet": 62_006, "resnet18": 11_173_962, "vgg16": 14_728_266}
STATISTICS = {"convolution": 0, "lenet": 0, "resnet18": 9_600, "vgg16": 8_448}  # running means and variances
TENSORS = {"convolution": 4, "lenet": 10, "resnet18": 62, "vgg16": 54}  # of parameters

RESNET18_STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))  # channels, stride of the first of two blocks
VGG16_BLOCKS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


def build(name: Name, seed: int) -> nn.Module:
    """The network `name` with the weights that `seed` draws; torch's own generator is left as it was."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return {"convolution": _convolution, "lenet": _lenet, "resnet18": _resnet18, "vgg16": _vgg16}[name]()


def _convolution() -> nn.Module:
    """The study's simple one: 3 to 3 channels, 3 x 3, stride 1; pool; linear."""
    from torch import nn

    return nn.Sequential(nn.Conv2d(3, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3 * 15 * 15, CLASSES))


def _lenet() -> nn.Module:
    """Two convolutions and three linear layers: a quarter of a megabyte of weights."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(3, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 5 * 5, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, CLASSES),
    )


def _resnet18() -> nn.Module:
    """ResNet-18 as for CIFAR-10: a first convolution of 3 x 3, no pool after it."""
    from torch import nn

    class Block(nn.Module):
        """Two convolutions beside a short cut, added up."""

        def __init__(self, taken: int, given: int, stride: int) -> None:
            super().__init__()
            self.main = nn.Sequential(
                nn.Conv2d(taken, given, 3, stride, 1, bias=False),
                nn.BatchNorm2d(given),
                nn.ReLU(),
                nn.Conv2d(given, given, 3, 1, 1, bias=False),
                nn.BatchNorm2d(given),
            )
            is_same = stride == 1 and taken == given
            self.short_cut = (
                nn.Sequential()
                if is_same
                else nn.Sequential(nn.Conv2d(taken, given, 1, stride, bias=False), nn.BatchNorm2d(given))
            )

        def forward(self, images: Tensor) -> Tensor:
            return nn.functional.relu(self.main(images) + self.short_cut(images))

    layers: list[nn.Module] = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    taken = 64
    for given, stride in RESNET18_STAGES:
        layers += [Block(taken, given, stride), Block(given, given, 1)]
        taken = given
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES))


def _vgg16() -> nn.Module:
    """VGG16 with batch normalisation and one linear layer, as for CIFAR-10."""
    from torch import nn

    layers: list[nn.Module] = []
    taken = 3
    for block in VGG16_BLOCKS:
        for given in block:
            layers += [nn.Conv2d(taken, given, 3, 1, 1), nn.BatchNorm2d(given), nn.ReLU()]
            taken = given
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, CLASSES))
