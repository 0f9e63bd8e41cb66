"""The classes of the schema benchmark, in noizu_mcp."""

from typing import Literal

from noizu_mcp import Schema, field


class Echo(Schema):
    text: str = field(min_length=1)
    repeat: int = field(default=1, min=1, max=10)
    mode: Literal["plain", "upper", "lower"] = "plain"


class Address(Schema):
    street: str = field(min_length=1)
    city: str = field(min_length=1)
    zip: str = field(pattern="^[0-9]{4,5}$")
    country: str = field(min_length=2, max_length=2)


class Customer(Schema):
    name: str = field(min_length=1, max_length=100)
    email: str = field(pattern="^[^@]+@[^@]+$")
    address: Address


class Line(Schema):
    sku: str = field(min_length=1)
    count: int = field(min=1)
    price: float = field(min=0)


class Order(Schema):
    number: str = field(pattern="^[A-Z]-[0-9]+$")
    customer: Customer
    lines: list[Line] = field(min=1)
    tags: list[str] = field(factory=list, max=16)
    priority: Literal["low", "normal", "high"] = "normal"
    discount: float = field(default=0.0, min=0, max=1)
    gift: bool = False
    note: str | None = None


class Batch(Schema):
    orders: list[Order] = field(max=1000)
    dry_run: bool = False


class Circle(Schema):
    kind: Literal["circle"]
    x: float
    y: float
    radius: float = field(exclusive_min=0)


class Box(Schema):
    kind: Literal["box"]
    x: float
    y: float
    width: float = field(min=0)
    height: float = field(min=0)


class Label(Schema):
    kind: Literal["label"]
    x: float
    y: float
    text: str
    size: int = field(default=10, min=1)


class Path(Schema):
    kind: Literal["path"]
    points: list[tuple[float, float]]
    closed: bool = False


class Drawing(Schema):
    title: str
    shapes: list[Circle | Box | Label | Path]


CLASSES = {"small": Echo, "medium": Order, "large": Batch, "union": Drawing}
