"""The classes of the schema benchmark, in pydantic."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field


class Echo(BaseModel):
    text: Annotated[str, Field(min_length=1)]
    repeat: Annotated[int, Field(ge=1, le=10)] = 1
    mode: Literal["plain", "upper", "lower"] = "plain"


class Address(BaseModel):
    street: Annotated[str, Field(min_length=1)]
    city: Annotated[str, Field(min_length=1)]
    zip: Annotated[str, Field(pattern="^[0-9]{4,5}$")]
    country: Annotated[str, Field(min_length=2, max_length=2)]


class Customer(BaseModel):
    name: Annotated[str, Field(min_length=1, max_length=100)]
    email: Annotated[str, Field(pattern="^[^@]+@[^@]+$")]
    address: Address


class Line(BaseModel):
    sku: Annotated[str, Field(min_length=1)]
    count: Annotated[int, Field(ge=1)]
    price: Annotated[float, Field(ge=0)]


class Order(BaseModel):
    number: Annotated[str, Field(pattern="^[A-Z]-[0-9]+$")]
    customer: Customer
    lines: Annotated[list[Line], Field(min_length=1)]
    tags: Annotated[list[str], Field(default_factory=list, max_length=16)]
    priority: Literal["low", "normal", "high"] = "normal"
    discount: Annotated[float, Field(ge=0, le=1)] = 0.0
    gift: bool = False
    note: str | None = None


class Batch(BaseModel):
    orders: Annotated[list[Order], Field(max_length=1000)]
    dry_run: bool = False


class Circle(BaseModel):
    kind: Literal["circle"]
    x: float
    y: float
    radius: Annotated[float, Field(gt=0)]


class Box(BaseModel):
    kind: Literal["box"]
    x: float
    y: float
    width: Annotated[float, Field(ge=0)]
    height: Annotated[float, Field(ge=0)]


class Label(BaseModel):
    kind: Literal["label"]
    x: float
    y: float
    text: str
    size: Annotated[int, Field(ge=1)] = 10


class Path(BaseModel):
    kind: Literal["path"]
    points: list[tuple[float, float]]
    closed: bool = False


class Drawing(BaseModel):
    title: str
    # The fastest way that pydantic has for a union.
    shapes: list[Annotated[Circle | Box | Label | Path, Field(discriminator="kind")]]


CLASSES = {"small": Echo, "medium": Order, "large": Batch, "union": Drawing}
